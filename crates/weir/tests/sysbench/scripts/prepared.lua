-- Prepared statements with numbers, texts and NULL.

sysbench.cmdline.options = {
   rows = { "Number of rows", 100 },
}

function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE typed (id INTEGER NOT NULL PRIMARY KEY, n INTEGER, v VARCHAR(20), c CHAR(10))")
   con:bulk_insert_init("INSERT INTO typed (id, n, v, c) VALUES")
   for i = 1, sysbench.opt.rows do con:bulk_insert_next("(" .. i .. ", 5, 'v', 'c')") end
   con:bulk_insert_done()
end

function thread_init()
   -- sysbench lets the collector free what is bound to a statement: with PostgreSQL a number then arrives as raw bytes.
   collectgarbage("stop")
   con = sysbench.sql.driver():connect()
   local t = sysbench.sql.type
   update = con:prepare("UPDATE typed SET n = ?, v = ?, c = ? WHERE id = ?")
   params = {
      update:bind_create(t.SMALLINT), update:bind_create(t.VARCHAR, 20), update:bind_create(t.CHAR, 10),
      update:bind_create(t.INT)
   }
   update:bind_param(unpack(params))
   read = con:prepare("SELECT n, v, c FROM typed WHERE id = ?")
   id = read:bind_create(t.BIGINT)
   read:bind_param(id)
end

function event()
   local number = sysbench.rand.special(1, sysbench.opt.rows)
   local amount = sysbench.rand.uniform(0, 100)
   -- sysbench's pgsql driver leaves the value before it in place of NULL, and sends raw memory where none was.
   if amount == 0 and set then amount = nil end
   set = true
   params[1]:set(amount)
   params[2]:set_rand_str("@@@@####")
   params[3]:set("fixed")
   params[4]:set(number)
   update:execute()
   id:set(number)
   local rs = read:execute()
   assert(rs.nrows == 1)
end

function thread_done()
   update:close()
   read:close()
   con:disconnect()
end

function cleanup()
   sysbench.sql.driver():connect():query("DROP TABLE typed")
end
