-- No database at all: random numbers, a histogram and ffi.

sysbench.cmdline.options = {
   per_event = { "Numbers an event", 10 },
}

local ffi = require("ffi")
ffi.cdef("int abs(int);")

function thread_init(thread)
   assert(thread == sysbench.tid)
   numbers = sysbench.histogram.new(1024, 1, 10000)
end

function event(thread)
   for _ = 1, sysbench.opt.per_event do
      numbers:update(sysbench.rand.gaussian(1, 10000))
   end
   assert(ffi.C.abs(-3) == 3)
   assert(tonumber(sysbench.rand.uniform_uint64() % 10ULL) < 10)
   assert(sysbench.rand.unique() ~= sysbench.rand.unique())
end
