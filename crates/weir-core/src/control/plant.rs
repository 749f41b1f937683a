//! The plant: page cache, write-back, throttled writers, block queue and device, simulated.
