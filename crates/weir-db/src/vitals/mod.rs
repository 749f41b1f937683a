//! What a server says of itself: variables, counters, waits.
