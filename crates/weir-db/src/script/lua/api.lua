-- What scripts written for sysbench 1.0 find in their environment. `raw` holds the functions that act, `given` what
-- is known when a state is made; the functions returned are those by which weir calls a script.

local raw, given = ...

-- Reading a name that weir lacks is an error that says so, instead of a nil that fails somewhere else.
local function closed(name, content)
   return setmetatable(content, {
      __index = function(_, key)
         error("weir has no " .. name .. "." .. tostring(key), 2)
      end
   })
end

local function class(name)
   local methods = { __tostring = function() return "<" .. name .. ">" end }
   methods.__index = methods
   return setmetatable(methods, {
      __index = function(_, key) error("weir's " .. name .. " has no " .. tostring(key), 2) end
   })
end

-- Functions of the C library of sysbench that weir offers under their names; `ffi.C` finds them there.
local symbols = {}
local ffi = require("ffi")
local real_c = ffi.C
local proxy = setmetatable({
   C = setmetatable({}, {
      __index = function(_, name)
         if symbols[name] then return symbols[name] end
         if type(name) == "string" and (name:match("^sb_") or name:match("^db_")) then
            error("weir has no ffi.C." .. name .. " of sysbench's own C functions", 2)
         end
         return real_c[name]
      end,
      __newindex = function(_, name, value) real_c[name] = value end
   })
}, { __index = ffi })
package.loaded.ffi = proxy
_G.ffi = proxy

local RESTART_EVENT = 1

sysbench = closed("sysbench", {
   tid = given.tid,
   version = "1.0.20",
   version_string = "sysbench 1.0.20",
   error = closed("sysbench.error", { NONE = 0, RESTART_EVENT = RESTART_EVENT }),
   opt = {},
   hooks = {},
})

sysbench.cmdline = {
   argv = given.argv,
   command = given.command,
   script_path = given.script_path,
   ARG_NULL = 0,
   ARG_BOOL = 1,
   ARG_INT = 2,
   ARG_SIZE = 3,
   ARG_DOUBLE = 4,
   ARG_STRING = 5,
   ARG_LIST = 6,
   ARG_FILE = 7,
   ARG_MAX = 8,
   PARALLEL_COMMAND = true,
   print_test_options = raw.print_options,
}

function sysbench.cmdline.command_defined(name)
   local commands = sysbench.cmdline.commands
   return type(commands) == "table" and commands[name] ~= nil and commands[name][1] ~= nil
end

function sysbench.cmdline.command_parallel(name)
   return sysbench.cmdline.command_defined(name) and
      sysbench.cmdline.commands[name][2] == sysbench.cmdline.PARALLEL_COMMAND
end

function sysbench.cmdline.call_command(name)
   if not sysbench.cmdline.command_defined(name) then return false end
   local answer = sysbench.cmdline.commands[name][1]()
   return answer == nil or answer ~= false
end

-- Random numbers -----------------------------------------------------------------------------------------------------

sysbench.rand = closed("sysbench.rand", {
   default = raw.default,
   uniform = raw.uniform,
   gaussian = raw.gaussian,
   special = raw.special,
   pareto = raw.pareto,
   unique = raw.unique,
   string = raw.string,
   uniform_double = raw.unit,
   uniform_uint64 = function()
      local high, low = raw.halves()
      return ffi.new("uint64_t", high) * 4294967296ULL + low
   end,
})

symbols.sb_rand_default = raw.default
symbols.sb_rand_uniform = raw.uniform
symbols.sb_rand_gaussian = raw.gaussian
symbols.sb_rand_special = raw.special
symbols.sb_rand_pareto = raw.pareto
symbols.sb_rand_unique = raw.unique
symbols.sb_rand_uniform_double = raw.unit
symbols.sb_rand_uniform_uint64 = sysbench.rand.uniform_uint64

-- Histograms ---------------------------------------------------------------------------------------------------------

local Histogram = class("sb_histogram")

function Histogram:update(value)
   local slot = math.floor((math.log(value) - self.low) * self.scale + 0.5)
   slot = math.max(0, math.min(self.size - 1, slot))
   self.counts[slot] = (self.counts[slot] or 0) + 1
end

function Histogram:print()
   local most = 0
   for _, count in pairs(self.counts) do most = math.max(most, count) end
   if most == 0 then return end
   print("       value  ------------- distribution ------------- count")
   for slot = 0, self.size - 1 do
      local count = self.counts[slot]
      if count then
         local stars = string.rep("*", math.floor(count * 40 / most + 0.5))
         print(string.format("%12.3f |%-40s %d", math.exp(slot / self.scale + self.low), stars, count))
      end
   end
end

sysbench.histogram = closed("sysbench.histogram", {
   new = function(size, lowest, highest)
      local low = math.log(lowest)
      local scale = (size - 1) / (math.log(highest) - low)
      return setmetatable({ size = size, low = low, scale = scale, counts = {} }, Histogram)
   end
})

-- SQL ----------------------------------------------------------------------------------------------------------------

local NOTHING, ROWS, IGNORABLE = 0, 1, 2

local types = {
   NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
   DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12
}

sysbench.sql = closed("sysbench.sql", {
   type = closed("sysbench.sql.type", types),
   error = closed("sysbench.sql.error", { NONE = 0, IGNORABLE = 1, FATAL = 2 }),
})

local is_whole = { [types.TINYINT] = true, [types.SMALLINT] = true, [types.INT] = true, [types.BIGINT] = true }
local is_float = { [types.FLOAT] = true, [types.DOUBLE] = true }
local is_text = { [types.CHAR] = true, [types.VARCHAR] = true }

local Driver = class("sql_driver")
local Connection = class("sql_connection")
local Statement = class("sql_statement")
local Parameter = class("sql_param")
local Result = class("sql_result")

function sysbench.sql.driver(name)
   local found = raw.driver(name)
   if not found then error("failed to initialize the DB driver", 2) end
   return setmetatable({ sname = found }, Driver)
end

function Driver:name()
   return self.sname
end

function Driver:connect()
   local handle = raw.connect(self.sname)
   if not handle then error("connection creation failed", 2) end
   -- Tables have no finalizer in this Lua, userdata have: a connection that nobody holds is closed.
   local guard = newproxy(true)
   getmetatable(guard).__gc = function() raw.disconnect(handle) end
   return setmetatable({
      handle = handle, guard = guard, driver = self, error = 0, sql_errno = 0, sql_state = false, sql_errmsg = false
   }, Connection)
end

function Connection:disconnect()
   raw.disconnect(self.handle)
   return true
end

function Connection:reconnect()
   assert(raw.reconnect(self.handle), "the connection could not be made again")
   return true
end

-- Raises what a statement failed with, two callers above; never tail-called, or the script's line would be lost.
local function raise(connection, status, query, number, state, message)
   if not message then error("SQL API error", 3) end
   connection.error = status == IGNORABLE and 1 or 2
   connection.sql_errno, connection.sql_state, connection.sql_errmsg = number, state, message
   local what = {
      connection = connection, query = query, sql_errno = number, sql_state = state, sql_errmsg = message
   }
   local hook = sysbench.hooks.sql_error_ignorable
   if status == IGNORABLE or (type(hook) == "function" and hook(what)) then
      what.errcode = RESTART_EVENT
      error(what, 3)
   end
   error(string.format("SQL error, errno = %d, state = '%s': %s", number, state, message), 3)
end

local function result(connection, rows, fields)
   return setmetatable({ connection = connection, nrows = rows, nfields = fields }, Result)
end

function Connection:query(sql)
   local status, a, b, c = raw.query(self.handle, sql, false)
   if status == NOTHING then return nil end
   if status ~= ROWS then raise(self, status, sql, a, b, c) end
   return result(self, a, b)
end

function Connection:query_row(sql)
   local status, a, b, c = raw.query(self.handle, sql, true)
   if status == NOTHING then return nil end
   if status ~= ROWS then raise(self, status, sql, a, b, c) end
   local row = a > 0 and raw.fetch(self.handle)
   if not row then return nil end
   return unpack(row, 1, b)
end

function Connection:prepare(sql)
   local handle, number, state, message = raw.prepare(self.handle, sql)
   if not handle then
      self.sql_errno, self.sql_state, self.sql_errmsg = number or 0, state, message
      raise(self, 3, sql)
   end
   return setmetatable({ connection = self, handle = handle, bound = {}, values = {}, count = 0 }, Statement)
end

function Connection:bulk_insert_init(sql)
   assert(raw.bulk_init(self.handle, sql), "db_bulk_insert_init() failed")
   return true
end

function Connection:bulk_insert_next(value)
   assert(raw.bulk_next(self.handle, value), "db_bulk_insert_next() failed")
   return true
end

function Connection:bulk_insert_done()
   assert(raw.bulk_done(self.handle), "db_bulk_insert_done() failed")
   return true
end

function Statement:bind_create(kind, length)
   local sort = (is_whole[kind] and "whole") or (is_float[kind] and "float") or (is_text[kind] and "text")
   if not sort then error("Unsupported argument type: " .. tostring(kind), 2) end
   return setmetatable({ type = kind, sort = sort, max_len = length or 8 }, Parameter)
end

function Statement:bind_param(...)
   self.bound, self.count = { ... }, select("#", ...)
   self.values = {}
   return 0
end

function Statement:execute()
   local bound, count, status, a, b, c = self.bound, self.count, nil, nil, nil, nil
   if count == 0 then
      status, a, b, c = raw.execute(self.handle)
   elseif count == 1 then
      status, a, b, c = raw.execute(self.handle, rawget(bound[1], "value"))
   elseif count == 2 then
      status, a, b, c = raw.execute(self.handle, rawget(bound[1], "value"), rawget(bound[2], "value"))
   else
      local values = self.values
      for i = 1, count do values[i] = rawget(bound[i], "value") end
      status, a, b, c = raw.execute(self.handle, unpack(values, 1, count))
   end
   if status == NOTHING then return nil end
   if status ~= ROWS then raise(self.connection, status, "<prepared statement>", a, b, c) end
   return result(self.connection, a, b)
end

function Statement:close()
   raw.close(self.handle)
   return 0
end

function Parameter:set(value)
   if value == nil then
      self.value = nil
   elseif self.sort == "text" then
      if type(value) ~= "string" then value = tostring(value) end
      self.value = #value > self.max_len and value:sub(1, self.max_len) or value
   else
      local number = tonumber(value)
      if type(value) == "string" or not number then
         error("a " .. type(value) .. " cannot be a number for this parameter", 2)
      end
      if self.sort == "whole" then number = number >= 0 and math.floor(number) or math.ceil(number) end
      self.value = number
   end
end

function Parameter:set_rand_str(pattern)
   if self.sort ~= "text" then error("Unsupported argument type: " .. tostring(self.type), 2) end
   self.value = raw.string(#pattern > self.max_len and pattern:sub(1, self.max_len) or pattern)
end

function Result:fetch_row()
   return raw.fetch(self.connection.handle)
end

function Result:free()
   raw.free(self.connection.handle)
   return true
end

-- Reports ------------------------------------------------------------------------------------------------------------

local function rates(stat)
   local function per_second(count) return count / stat.time_interval end
   return per_second(stat.events), per_second(stat.reads + stat.writes + stat.other), per_second(stat.reads),
      per_second(stat.writes), per_second(stat.other), per_second(stat.errors), per_second(stat.reconnects)
end

function sysbench.report_csv(stat)
   local tps, qps, reads, writes, other, errors, reconnects = rates(stat)
   print(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f", stat.time_total,
                       stat.threads_running, tps, qps, reads, writes, other, stat.latency_pct * 1000, errors,
                       reconnects))
end

local json_open = false

function sysbench.report_json(stat)
   local tps, qps, reads, writes, other, errors, reconnects = rates(stat)
   io.write(json_open and ",\n" or "[\n")
   json_open = true
   io.write(string.format([[
  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]], stat.time_total, stat.threads_running, tps, qps, reads, writes, other, stat.latency_pct * 1000, errors,
       reconnects))
   io.flush()
end

function sysbench.report_default(stat)
   local tps, qps, reads, writes, other, errors, reconnects = rates(stat)
   print(string.format("[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f " ..
                          "err/s %4.2f reconn/s: %4.2f", stat.time_total, stat.threads_running, tps, qps, reads,
                       writes, other, sysbench.opt.percentile, stat.latency_pct * 1000, errors, reconnects))
end

-- Names of sysbench 0.5 ----------------------------------------------------------------------------------------------

thread_id = sysbench.tid
test = given.script_path

function sb_rnd()
   local _, low = raw.halves()
   return low
end

sb_rand = raw.default
sb_rand_str = raw.string
sb_rand_uniform = raw.uniform
sb_rand_gaussian = raw.gaussian
sb_rand_special = raw.special

function sb_rand_uniq(from, to)
   from, to = from or 0, to or 4294967295
   while true do
      local number = raw.unique()
      if number >= from and number <= to then return number end
   end
end

mysql_table_engine = "innodb"
myisam_max_rows = 1000000

local connection

local function connected()
   connection = connection or sysbench.sql.driver():connect()
   return connection
end

sysbench.db = closed("sysbench.db", {
   DB_ERROR_NONE = 0,
   DB_ERROR_RESTART_TRANSACTION = 1,
   DB_ERROR_FAILED = 2,
   connect = connected,
   disconnect = function()
      if connection then connection:disconnect() end
      connection = nil
   end,
   query = function(sql)
      local it = connected()
      local status, a, b, c = raw.query(it.handle, sql, false)
      if status ~= NOTHING and status ~= ROWS then raise(it, status, sql, a, b, c) end
   end,
   bulk_insert_init = function(sql) return connected():bulk_insert_init(sql) end,
   bulk_insert_next = function(value) return connected():bulk_insert_next(value) end,
   bulk_insert_done = function() return connected():bulk_insert_done() end,
   prepare = function(sql) return connected():prepare(sql) end,
   -- Here the table itself is bound: its content counts when the statement is executed.
   bind_param = function(statement, values) statement.bound, statement.plain = {}, values end,
   execute = function(statement)
      local values = rawget(statement, "plain") or {}
      local status, a, b, c = raw.execute(statement.handle, unpack(values, 1, table.maxn(values)))
      if status ~= NOTHING and status ~= ROWS then
         raise(statement.connection, status, "<prepared statement>", a, b, c)
      end
      return status == ROWS and result(statement.connection, a, b) or nil
   end,
   close = function(statement) return statement:close() end,
   store_results = function() end,
   free_results = function(rows) if rows then rows:free() end end,
})

for _, name in ipairs { "connect", "disconnect", "query", "bulk_insert_init", "bulk_insert_next",
                        "bulk_insert_done", "prepare", "bind_param", "execute", "close", "store_results",
                        "free_results" } do
   _G["db_" .. name] = sysbench.db[name]
end
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2

-- How weir calls a script --------------------------------------------------------------------------------------------

local function words(problem)
   if type(problem) == "string" then return problem end
   if type(problem) == "table" and problem.sql_errmsg then
      return string.format("SQL error, errno = %d, state = '%s': %s", problem.sql_errno, problem.sql_state,
                           problem.sql_errmsg)
   end
   -- Errors of weir's own functions are objects whose text has a trace of calls behind it.
   if type(problem) == "userdata" then return (tostring(problem):gsub("\nstack traceback:.*", "")) end
   return "(not a string)"
end

local function protected(what, ...)
   local good, answer = pcall(what, ...)
   if good then return true, answer end
   return false, words(answer)
end

local MORE, STOP, FAILED, CUT, AGAIN = 0, 1, 2, 3, 4

-- One attempt at an event; after an error that may be ignored the hook makes ready for the next one.
local function attempt()
   local good, answer = pcall(event, given.tid)
   -- As in sysbench: the event that asks for no other one counts no more.
   if good then return answer and CUT or MORE end
   if type(answer) ~= "table" or answer.errcode ~= RESTART_EVENT then return FAILED, words(answer) end
   local hook = sysbench.hooks.before_restart_event
   if hook then
      local fine, problem = pcall(hook, answer)
      if not fine then return FAILED, words(problem) end
   end
   return AGAIN, answer.sql_errmsg, answer.sql_errno, answer.sql_state
end

-- A script with a loop of its own runs as a coroutine that pauses where it asks whether to go on.
local default_thread_run = function() end
thread_run = default_thread_run
local loop, events = nil, 0

function symbols.sb_more_events() return coroutine.yield() end
function symbols.sb_event_start() end
function symbols.sb_event_stop() events = events + 1 end

local function own_loop()
   local before, answer = events, true
   if not loop then loop, answer = coroutine.create(thread_run), given.tid end
   while true do
      local good, problem = coroutine.resume(loop, answer)
      if not good then return FAILED, words(problem) end
      if coroutine.status(loop) == "dead" then return events > before and STOP or CUT end
      if events > before then return MORE end
      answer = true
   end
end

-- Rows cost time, and most scripts fetch none: they are kept once a text is read that has the word.
local loadstring = loadstring
local function compiled(text, name)
   if text:find("fetch_row", 1, true) then raw.keep_rows() end
   return loadstring(text, name)
end

-- What Lua reads by itself is not looked at: it may fetch.
for _, name in ipairs { "dofile", "load", "loadfile", "loadstring" } do
   local read = _G[name]
   _G[name] = function(...)
      raw.keep_rows()
      return read(...)
   end
end

local calls = {}

function calls.attempt()
   if thread_run ~= default_thread_run then return own_loop() end
   return attempt()
end

-- Reads the script: `text` where it is a file, else the module of that name.
function calls.load(text, name)
   if not text then return protected(require, name) end
   local chunk, problem = compiled(text, "@" .. name)
   if not chunk then return false, problem end
   return protected(chunk)
end

function calls.defined(name) return type(rawget(_G, name)) == "function" end

function calls.call(name, ...)
   local what = rawget(_G, name)
   if what == nil then return true end
   return protected(what, ...)
end

function calls.command(name) return protected(sysbench.cmdline.call_command, name) end
calls.command_defined = sysbench.cmdline.command_defined
calls.command_parallel = sysbench.cmdline.command_parallel

function calls.hook_defined(name) return type(rawget(sysbench.hooks, name)) == "function" end
function calls.hook(name, stat) return protected(sysbench.hooks[name], stat) end

-- Options: a table of their own, and for scripts that declare none also globals.
function calls.export(options, as_globals)
   sysbench.opt = options
   if as_globals then for name, value in pairs(options) do _G[name] = value end end
end

function calls.options() return sysbench.cmdline.options end

-- Lets a loop of the script's own see that it is over.
function calls.end_loop()
   if loop and coroutine.status(loop) == "suspended" then return coroutine.resume(loop, false) end
end

function calls.finish()
   if json_open then io.write("\n]\n") end
   io.flush()
end

-- Lua itself would take whatever anybody put into the current folder.
local function without_current(path, variable)
   local asked, kept = os.getenv(variable) or "", {}
   for template in path:gmatch("[^;]+") do
      if template:sub(1, 2) ~= "./" or asked:find(template, 1, true) then kept[#kept + 1] = template end
   end
   return table.concat(kept, ";")
end
package.path = without_current(package.path, "LUA_PATH")
package.cpath = without_current(package.cpath, "LUA_CPATH")

local from_path = package.loaders[2]
package.loaders[2] = function(name)
   local found = from_path(name)
   if type(found) == "function" then raw.keep_rows() end
   return found
end

-- After what is loaded already: files beside the script and in the current folder.
table.insert(package.loaders, 2, function(name)
   local path, text = raw.beside(name)
   if not path then return "\n\tno file '" .. name .. ".lua' beside the script that nobody else can have put there" end
   return assert(compiled(text, "@" .. path))
end)

-- Modules of weir's come last: a file of the same name beside the script is meant.
table.insert(package.loaders, function(name)
   local text = raw.module(name)
   if not text then return "\n\tno module '" .. name .. "' of weir's" end
   return assert(compiled(text, "@" .. name .. ".lua"))
end)

-- Both sides write lines: in the order in which they were written.
io.stdout:setvbuf("line")

return calls
