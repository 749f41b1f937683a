//! weir.

fn main() {}
