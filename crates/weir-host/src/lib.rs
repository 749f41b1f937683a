//! Everything under /sys, /proc and cgroups, read under a root path; knobs and their journal.
