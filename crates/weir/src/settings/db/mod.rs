//! What the options of `weir db` mean.
