-- The selects of oltp_read_write.

require("oltp_common")

local ranges = { "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges" }

function prepare_statements()
   prepare_point_selects()
   if not sysbench.opt.skip_trx then
      prepare_begin()
      prepare_commit()
   end
   if sysbench.opt.range_selects then
      for _, key in ipairs(ranges) do prepare_for_each_table(key) end
   end
end

function event()
   if not sysbench.opt.skip_trx then begin() end
   execute_point_selects()
   if sysbench.opt.range_selects then
      execute_simple_ranges()
      execute_sum_ranges()
      execute_order_ranges()
      execute_distinct_ranges()
   end
   if not sysbench.opt.skip_trx then commit() end
end
