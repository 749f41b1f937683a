//! Values of statement parameters.

pub use weir_core::oltp::Value;
