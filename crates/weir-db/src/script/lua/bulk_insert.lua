-- New rows without end, as many a statement as it holds; a table a thread.

local rows = 0

local function for_each_table(act)
   local con = sysbench.sql.driver():connect()
   for table_num = 1, sysbench.opt.threads do act(con, table_num) end
end

function prepare()
   for_each_table(function(con, table_num)
      print("Creating table 'sbtest" .. table_num .. "'...")
      con:query(([[
        CREATE TABLE IF NOT EXISTS sbtest%d (
          id INTEGER NOT NULL,
          k INTEGER DEFAULT '0' NOT NULL,
          PRIMARY KEY (id))]]):format(table_num))
   end)
end

function cleanup()
   for_each_table(function(con, table_num)
      print("Dropping table 'sbtest" .. table_num .. "'...")
      con:query("DROP TABLE IF EXISTS sbtest" .. table_num)
   end)
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function event(thread)
   if rows == 0 then con:bulk_insert_init("INSERT INTO sbtest" .. thread + 1 .. " VALUES") end
   rows = rows + 1
   con:bulk_insert_next("(" .. rows .. "," .. rows .. ")")
end

function thread_done()
   con:bulk_insert_done()
   con:disconnect()
end
