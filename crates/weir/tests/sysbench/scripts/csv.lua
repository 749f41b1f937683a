-- Reports in CSV, the way sysbench's own documentation shows it.

sysbench.hooks.report_intermediate = sysbench.report_csv

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function event()
   con:query("SELECT " .. sysbench.rand.uniform(1, 1000) .. " + 1")
end

function thread_done()
   con:disconnect()
end

function sysbench.hooks.report_cumulative(stat)
   print(string.format("reads are events: %s, errors: %d", tostring(stat.reads == stat.events), stat.errors))
   print(string.format("latencies are in order: %s",
                       tostring(stat.latency_min <= stat.latency_avg and stat.latency_avg <= stat.latency_max)))
end
