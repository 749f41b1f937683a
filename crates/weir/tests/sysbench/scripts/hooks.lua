-- Hooks: an error that this script calls ignorable, and what it does before an event runs again.

local broken = false
local restarts = 0

function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE hooked (id INTEGER NOT NULL PRIMARY KEY, n INTEGER NOT NULL)")
   con:query("INSERT INTO hooked VALUES (1, 0), (2, 0)")
end

function init()
   print("init is called once")
end

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   if not broken then
      broken = true
      con:query("SELECT n FROM not_there")
   end
   con:query("UPDATE hooked SET n = n + 1 WHERE id = " .. sysbench.rand.uniform(1, 2))
end

function sysbench.hooks.sql_error_ignorable(err)
   -- A table that is missing: MySQL's number, PostgreSQL's state.
   return err.sql_errno == 1146 or err.sql_state == "42P01"
end

function sysbench.hooks.before_restart_event(err)
   restarts = restarts + 1
   print("again, after " .. err.query .. " for time " .. restarts)
end

function thread_done()
   print("restarts: " .. restarts)
   con:disconnect()
end

function done()
   print("done is called once")
end

function cleanup()
   sysbench.sql.driver():connect():query("DROP TABLE hooked")
end
