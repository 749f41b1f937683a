-- One new row an event, not prepared.

require("oltp_common")

local function prepare_tables()
   -- Numbers that the client makes up would meet those of rows that are there already.
   if not sysbench.opt.auto_inc then sysbench.opt.table_size = 0 end
   cmd_prepare()
end

sysbench.cmdline.commands.prepare = { prepare_tables, sysbench.cmdline.PARALLEL_COMMAND }

-- Called by what the oltp scripts have in common.
function prepare_statements() end

function event()
   local name = "sbtest" .. sysbench.rand.uniform(1, sysbench.opt.tables)
   local k = sysbench.rand.default(1, sysbench.opt.table_size)
   local c, pad = get_c_value(), get_pad_value()
   if sysbench.opt.auto_inc and drv:name() == "pgsql" then
      con:query(("INSERT INTO %s (k, c, pad) VALUES (%d, '%s', '%s')"):format(name, k, c, pad))
      return
   end
   -- MySQL numbers a row whose id is 0 itself; else a number of 32 bits, moved into the range of INTEGER.
   local id = sysbench.opt.auto_inc and 0 or sysbench.rand.unique() - 2147483648
   con:query(("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')"):format(name, id, k, c, pad))
end
