-- Tables of its own: orders and their lines, filled in bulk, read and written in transactions, with options and a
-- command of its own.

sysbench.cmdline.options = {
   customers = { "Number of customers", 20 },
   batch_rows = { "Lines of an order", 2 },
   label = { "What is written into a line", "plain" },
   states = { "States that an order can have", { "new", "paid", "sent" } },
   audit = { "Also read the order back", true },
}

local function connect()
   local drv = sysbench.sql.driver()
   return drv:connect(), drv
end

function prepare()
   local con, drv = connect()
   local id = drv:name() == "pgsql" and "SERIAL PRIMARY KEY" or "INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY"
   con:query("CREATE TABLE customers (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL)")
   con:query("CREATE TABLE orders (id " .. id .. ", customer INTEGER NOT NULL, state VARCHAR(10))")
   con:query("CREATE TABLE order_lines (id " .. id .. ", customer INTEGER NOT NULL, label VARCHAR(40), amount INTEGER)")
   con:bulk_insert_init("INSERT INTO customers (id, name) VALUES")
   for i = 1, sysbench.opt.customers do
      con:bulk_insert_next(string.format("(%d, '%s')", i, sysbench.rand.string("@@@@@@@@-####")))
   end
   con:bulk_insert_done()
   print("made " .. con:query_row("SELECT COUNT(*) FROM customers") .. " customers")
end

function thread_init()
   con = connect()
end

function thread_done()
   con:disconnect()
end

function event()
   local customer = sysbench.rand.default(1, sysbench.opt.customers)
   local state = sysbench.opt.states[sysbench.rand.uniform(1, #sysbench.opt.states)]
   con:query("BEGIN")
   con:query(string.format("INSERT INTO orders (customer, state) VALUES (%d, '%s')", customer, state))
   for _ = 1, sysbench.opt.batch_rows do
      con:query(string.format("INSERT INTO order_lines (customer, label, amount) VALUES (%d, '%s', %d)", customer,
                              sysbench.opt.label, sysbench.rand.pareto(1, 100)))
   end
   if sysbench.opt.audit then
      local rs = con:query("SELECT id, state FROM orders WHERE customer = " .. customer .. " ORDER BY id")
      assert(rs.nrows >= 1 and rs.nfields == 2)
      local row = rs:fetch_row()
      assert(tonumber(row[1]) >= 1 and #row[2] >= 3)
      rs:free()
   end
   con:query("COMMIT")
end

local function stock()
   local con = connect()
   local orders = tonumber(con:query_row("SELECT COUNT(*) FROM orders"))
   print(orders > 0 and "there are orders" or "there are none")
end

sysbench.cmdline.commands = { stock = { stock } }

function help()
   print("orders and their lines; the commands are prepare, run, stock and cleanup")
end

function cleanup()
   local con = connect()
   for _, name in ipairs { "order_lines", "orders", "customers" } do
      print("dropping " .. name)
      con:query("DROP TABLE IF EXISTS " .. name)
   end
end
