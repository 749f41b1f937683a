-- One row by its key.

require("oltp_common")

function prepare_statements()
   -- One select an event, whatever the default of scripts with transactions.
   sysbench.opt.point_selects = 1
   prepare_point_selects()
end

function event() execute_point_selects() end
