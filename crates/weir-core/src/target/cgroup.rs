//! Which part of a cgroup's path systemd alone names.

/// The groups of a path from the outermost that is no slice on: only systemd names that one (systemd.slice(5)). What lies in it is named
/// by whoever runs there, a user or a container. `..` leads out of the namespace of cgroups that weir is in, and counts as none.
pub fn groups_in_slices(path: &str) -> impl Iterator<Item = &str> {
    let groups = path.split('/').filter(|part| !part.is_empty() && *part != "..");
    groups.skip_while(|part| part.ends_with(".slice"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_lead_to_the_group_that_systemd_names() {
        for (path, expected) in [
            (
                "/system.slice/system-postgresql.slice/postgresql@15-main.service",
                &["postgresql@15-main.service"][..],
            ),
            (
                "/user.slice/user@1000.service/x.slice/mariadb.service",
                &["user@1000.service", "x.slice", "mariadb.service"],
            ),
            ("/../../../system.slice/mariadb.service", &["mariadb.service"]),
            ("/docker/0af1", &["docker", "0af1"]),
            ("/user.slice", &[]),
            ("", &[]),
        ] {
            assert_eq!(groups_in_slices(path).collect::<Vec<_>>(), expected, "{path}");
        }
    }
}
