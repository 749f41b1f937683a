-- Counts over several random ranges of k. Each thread asks for ranges of its own part of the table.

require("oltp_common")

sysbench.cmdline.options.number_of_ranges = { "Number of random BETWEEN ranges per SELECT", 10 }
sysbench.cmdline.options.delta = { "Size of BETWEEN ranges", 5 }

local params, from, to
local drop_tables = cleanup

function cleanup()
   assert(sysbench.opt.tables == 1, "this benchmark does not support --tables > 1")
   drop_tables()
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   local count = sysbench.opt.number_of_ranges
   stmt = con:prepare(([[
        SELECT count(k)
          FROM sbtest1
          WHERE %s]]):format(("k BETWEEN ? AND ? OR "):rep(count - 1) .. "k BETWEEN ? AND ?"))
   params = {}
   for i = 1, 2 * count do params[i] = stmt:bind_create(sysbench.sql.type.INT) end
   stmt:bind_param(unpack(params))
   local part = sysbench.opt.table_size / sysbench.opt.threads
   from = part * (sysbench.tid % sysbench.opt.threads)
   to = from + part
end

function thread_done()
   stmt:close()
   con:disconnect()
end

function event()
   for i = 1, #params, 2 do
      local low = sysbench.rand.default(from, to)
      params[i]:set(low)
      params[i + 1]:set(low + sysbench.opt.delta)
   end
   stmt:execute()
end
