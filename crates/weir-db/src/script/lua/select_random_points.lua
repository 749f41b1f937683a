-- Rows at several random points of k. Each thread asks for points of its own part of the table.

require("oltp_common")

sysbench.cmdline.options.random_points = { "Number of random points in the IN() clause in generated SELECTs", 10 }

local params, from, to
local drop_tables = cleanup

function cleanup()
   assert(sysbench.opt.tables == 1, "this benchmark does not support --tables > 1")
   drop_tables()
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   local count = sysbench.opt.random_points
   stmt = con:prepare(([[
        SELECT id, k, c, pad
          FROM sbtest1
          WHERE k IN (%s)
        ]]):format(("?, "):rep(count - 1) .. "?"))
   params = {}
   for i = 1, count do params[i] = stmt:bind_create(sysbench.sql.type.INT) end
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
   for _, param in ipairs(params) do param:set(sysbench.rand.default(from, to)) end
   stmt:execute()
end
