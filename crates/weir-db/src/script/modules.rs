//! The scripts that come with weir: the names, tables and statements of sysbench's own.

/// Their names.
pub const NAMES: [&str; 12] = [
    "oltp_common",
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "bulk_insert",
    "select_random_points",
    "select_random_ranges",
];

const TEXTS: [&str; 12] = [
    include_str!("lua/oltp_common.lua"),
    include_str!("lua/oltp_read_write.lua"),
    include_str!("lua/oltp_read_only.lua"),
    include_str!("lua/oltp_write_only.lua"),
    include_str!("lua/oltp_point_select.lua"),
    include_str!("lua/oltp_update_index.lua"),
    include_str!("lua/oltp_update_non_index.lua"),
    include_str!("lua/oltp_insert.lua"),
    include_str!("lua/oltp_delete.lua"),
    include_str!("lua/bulk_insert.lua"),
    include_str!("lua/select_random_points.lua"),
    include_str!("lua/select_random_ranges.lua"),
];

/// The text of a module.
pub fn text(name: &str) -> Option<&'static str> {
    NAMES.iter().position(|known| *known == name).map(|index| TEXTS[index])
}

/// Whether it is one of weir's.
pub fn is_own(name: &str) -> bool {
    NAMES.contains(&name)
}
