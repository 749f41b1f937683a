//! Values of statement parameters.

pub use weir_oltp::Value;
