//! Tables made and filled.
