//! Users' sysbench scripts in Lua.
