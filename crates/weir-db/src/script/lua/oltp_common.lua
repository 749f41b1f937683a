-- The tables, options and statements that the oltp scripts have in common, under the names that scripts of users
-- build upon.

if sysbench.cmdline.command == nil then
   error("Command is required. Supported commands: prepare, prewarm, run, cleanup, help")
end

function init()
   assert(event ~= nil, "this script is meant to be included by other OLTP scripts and should not be called directly.")
end

sysbench.cmdline.options = {
   tables = { "Number of tables", 1 },
   table_size = { "Number of rows per table", 10000 },
   range_size = { "Range size for range SELECT queries", 100 },
   point_selects = { "Number of point SELECT queries per transaction", 10 },
   simple_ranges = { "Number of simple range SELECT queries per transaction", 1 },
   sum_ranges = { "Number of SELECT SUM() queries per transaction", 1 },
   order_ranges = { "Number of SELECT ORDER BY queries per transaction", 1 },
   distinct_ranges = { "Number of SELECT DISTINCT queries per transaction", 1 },
   index_updates = { "Number of UPDATE index queries per transaction", 1 },
   non_index_updates = { "Number of UPDATE non-index queries per transaction", 1 },
   delete_inserts = { "Number of DELETE/INSERT combinations per transaction", 1 },
   range_selects = { "Enable/disable all range SELECT queries", true },
   auto_inc = {
      "Use AUTO_INCREMENT column as Primary Key (for MySQL), or its alternatives in other DBMS. When disabled, use " ..
         "client-generated IDs", true
   },
   skip_trx = { "Don't start explicit transactions and execute all queries in the AUTOCOMMIT mode", false },
   secondary = { "Use a secondary index in place of the PRIMARY KEY", false },
   create_secondary = { "Create a secondary index in addition to the PRIMARY KEY", true },
   mysql_storage_engine = { "Storage engine, if MySQL is used", "innodb" },
   pgsql_variant = {
      "Use this PostgreSQL variant when running with the PostgreSQL driver. The only currently supported variant is " ..
         "'redshift'. When enabled, create_secondary is automatically disabled, and delete_inserts is set to 0"
   },
}

-- Values of the columns c and pad: ten and five groups of digits.
local group = "###########"
local c_pattern = group .. ("-" .. group):rep(9)
local pad_pattern = group .. ("-" .. group):rep(4)

function get_c_value() return sysbench.rand.string(c_pattern) end
function get_pad_value() return sysbench.rand.string(pad_pattern) end

-- Making the tables --------------------------------------------------------------------------------------------------

local function id_column(driver)
   if not sysbench.opt.auto_inc then return "INTEGER NOT NULL" end
   if driver == "mysql" then return "INTEGER NOT NULL AUTO_INCREMENT" end
   return sysbench.opt.pgsql_variant == "redshift" and "INTEGER IDENTITY(1,1)" or "SERIAL"
end

local function is_redshift(driver)
   return driver == "pgsql" and sysbench.opt.pgsql_variant == "redshift"
end

local function fill(con, table_num)
   local size, counted = sysbench.opt.table_size, sysbench.opt.auto_inc
   con:bulk_insert_init(("INSERT INTO sbtest%d(%sk, c, pad) VALUES"):format(table_num, counted and "" or "id, "))
   for id = 1, size do
      local c, pad = get_c_value(), get_pad_value()
      local k = sysbench.rand.default(1, size)
      con:bulk_insert_next(counted and ("(%d, '%s', '%s')"):format(k, c, pad) or
                              ("(%d, %d, '%s', '%s')"):format(id, k, c, pad))
   end
   con:bulk_insert_done()
end

function create_table(drv, con, table_num)
   local driver = drv:name()
   print(("Creating table 'sbtest%d'..."):format(table_num))
   local engine = driver == "mysql" and "/*! ENGINE = " .. sysbench.opt.mysql_storage_engine .. " */" or ""
   local extra = driver == "mysql" and mysql_table_options or ""
   con:query(([[
CREATE TABLE sbtest%d(
  id %s,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  %s (id)
) %s %s]]):format(table_num, id_column(driver), sysbench.opt.secondary and "KEY xid" or "PRIMARY KEY", engine, extra))
   if sysbench.opt.table_size > 0 then
      print(("Inserting %d records into 'sbtest%d'"):format(sysbench.opt.table_size, table_num))
   end
   fill(con, table_num)
   if sysbench.opt.create_secondary and not is_redshift(driver) then
      print(("Creating a secondary index on 'sbtest%d'..."):format(table_num))
      con:query(("CREATE INDEX k_%d ON sbtest%d(k)"):format(table_num, table_num))
   end
end

-- Calls `act` for the tables that are this thread's share.
local function for_my_tables(act)
   local threads = sysbench.opt.threads
   for table_num = sysbench.tid % threads + 1, sysbench.opt.tables, threads do act(table_num) end
end

function cmd_prepare()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   for_my_tables(function(table_num) create_table(drv, con, table_num) end)
end

function cmd_prewarm()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   assert(drv:name() == "mysql", "prewarm is currently MySQL only")
   -- What the statements below sort and collect is to stay in memory.
   con:query("SET tmp_table_size=2*1024*1024*1024")
   con:query("SET max_heap_table_size=2*1024*1024*1024")
   for_my_tables(function(table_num)
      local name, size = "sbtest" .. table_num, sysbench.opt.table_size
      print("Prewarming table " .. name)
      con:query("ANALYZE TABLE " .. name)
      con:query(("SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %u) t"):format(name, size))
      con:query(("SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %u) t"):format(name, size))
   end)
end

sysbench.cmdline.commands = {
   prepare = { cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND },
   prewarm = { cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND },
}

function cleanup()
   local con = sysbench.sql.driver():connect()
   for table_num = 1, sysbench.opt.tables do
      print(("Dropping table 'sbtest%d'..."):format(table_num))
      con:query("DROP TABLE IF EXISTS sbtest" .. table_num)
   end
end

-- Statements ---------------------------------------------------------------------------------------------------------

local INT, CHAR = sysbench.sql.type.INT, sysbench.sql.type.CHAR

-- The text with the table's number left out, then the parameters: a type and, of texts, a length.
local definitions = {
   point_selects = { "SELECT c FROM sbtest%u WHERE id=?", { INT } },
   simple_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", { INT }, { INT } },
   sum_ranges = { "SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", { INT }, { INT } },
   order_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", { INT }, { INT } },
   distinct_ranges = { "SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", { INT }, { INT } },
   index_updates = { "UPDATE sbtest%u SET k=k+1 WHERE id=?", { INT } },
   non_index_updates = { "UPDATE sbtest%u SET c=? WHERE id=?", { CHAR, 120 }, { INT } },
   deletes = { "DELETE FROM sbtest%u WHERE id=?", { INT } },
   inserts = {
      "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", { INT }, { INT }, { CHAR, 120 }, { CHAR, 60 }
   },
}

function prepare_begin() stmt.begin = con:prepare("BEGIN") end
function prepare_commit() stmt.commit = con:prepare("COMMIT") end

function prepare_for_each_table(key)
   local definition = definitions[key]
   for table_num = 1, sysbench.opt.tables do
      local statement = con:prepare(definition[1]:format(table_num))
      local params = {}
      for i = 2, #definition do params[i - 1] = statement:bind_create(unpack(definition[i])) end
      if #params > 0 then
         statement:bind_param(unpack(params))
         param[table_num][key] = params
      end
      stmt[table_num][key] = statement
   end
end

for _, key in ipairs { "point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
                       "index_updates", "non_index_updates" } do
   _G["prepare_" .. key] = function() prepare_for_each_table(key) end
end

function prepare_delete_inserts()
   prepare_for_each_table("deletes")
   prepare_for_each_table("inserts")
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   stmt, param = {}, {}
   for table_num = 1, sysbench.opt.tables do stmt[table_num], param[table_num] = {}, {} end
   prepare_statements()
end

function close_statements()
   for table_num = 1, sysbench.opt.tables do
      for _, statement in pairs(stmt[table_num]) do statement:close() end
   end
   if stmt.begin then stmt.begin:close() end
   if stmt.commit then stmt.commit:close() end
end

function thread_done()
   close_statements()
   con:disconnect()
end

-- Events -------------------------------------------------------------------------------------------------------------

local function any_table() return sysbench.rand.uniform(1, sysbench.opt.tables) end
local function any_id() return sysbench.rand.default(1, sysbench.opt.table_size) end

function begin() stmt.begin:execute() end
function commit() stmt.commit:execute() end

-- So many times one statement of one table, with parameters that `set` sets.
local function execute(key, count, set)
   local table_num = any_table()
   local statement, params = stmt[table_num][key], param[table_num][key]
   for _ = 1, count do
      set(params)
      statement:execute()
   end
end

local function set_id(params) params[1]:set(any_id()) end

local function set_range(params)
   local id = any_id()
   params[1]:set(id)
   params[2]:set(id + sysbench.opt.range_size - 1)
end

local function set_c(params)
   params[1]:set_rand_str(c_pattern)
   params[2]:set(any_id())
end

function execute_point_selects() execute("point_selects", sysbench.opt.point_selects, set_id) end
function execute_simple_ranges() execute("simple_ranges", sysbench.opt.simple_ranges, set_range) end
function execute_sum_ranges() execute("sum_ranges", sysbench.opt.sum_ranges, set_range) end
function execute_order_ranges() execute("order_ranges", sysbench.opt.order_ranges, set_range) end
function execute_distinct_ranges() execute("distinct_ranges", sysbench.opt.distinct_ranges, set_range) end
function execute_index_updates() execute("index_updates", sysbench.opt.index_updates, set_id) end
function execute_non_index_updates() execute("non_index_updates", sysbench.opt.non_index_updates, set_c) end

function execute_delete_inserts()
   local table_num = any_table()
   local statements, params = stmt[table_num], param[table_num]
   for _ = 1, is_redshift(drv:name()) and 0 or sysbench.opt.delete_inserts do
      local id, k = any_id(), any_id()
      params.deletes[1]:set(id)
      statements.deletes:execute()
      params.inserts[1]:set(id)
      params.inserts[2]:set(k)
      params.inserts[3]:set_rand_str(c_pattern)
      params.inserts[4]:set_rand_str(pad_pattern)
      statements.inserts:execute()
   end
end

-- A connection made again knows no prepared statement: MySQL's numbers for one that was lost.
local lost = { [2006] = true, [2011] = true, [2013] = true, [2055] = true }

function sysbench.hooks.before_restart_event(what)
   if lost[what.sql_errno] then
      close_statements()
      prepare_statements()
   end
end
