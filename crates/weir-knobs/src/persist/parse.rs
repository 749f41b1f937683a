//! The comments in which weir's files say what they keep.

use super::Kept;
use crate::Setting;

/// What such a line begins with.
pub const LINE: &str = "# weir: ";
/// What stands before the setting of before.
pub const WAS: &str = ", was ";

/// Every setting that the text says it keeps; lines that say it badly are passed over.
pub fn kept(text: &str) -> Vec<Kept> {
    text.lines().filter_map(|line| parse(line.strip_prefix(LINE)?)).collect()
}

fn parse(line: &str) -> Option<Kept> {
    let (setting, before) = line.split_once(WAS).map_or((line, None), |(now, was)| (now, Some(was)));
    let before = before.and_then(|before| Some(before.parse::<Setting>().ok()?.value));
    Some(Kept { setting: setting.parse().ok()?, before })
}
