//! Who would overrule a file of weir's at boot.

use super::{Keeper, Kept, Persisted};
use crate::owner::{Configuration, File};

/// A sentence for each setting of the file that another one has the last word on. `configuration` is the machine's
/// as it is.
pub fn overruled(
    keeper: Keeper,
    persisted: &Persisted,
    kept: &[Kept],
    mut configuration: Configuration,
) -> Vec<String> {
    let file = File { path: persisted.path.clone(), text: persisted.text.clone() };
    let files = match keeper {
        Keeper::Sysctl => &mut configuration.sysctl,
        Keeper::Udev => &mut configuration.udev,
        Keeper::Tuned => &mut configuration.tuned,
        Keeper::Systemd => &mut configuration.units,
    };
    files.retain(|other| other.path != file.path);
    files.push(file);
    if keeper == Keeper::Tuned {
        configuration.tuned_active = "weir".to_string();
    }
    let held = kept.iter().filter(|one| persisted.left_out.iter().all(|left| left.setting != one.setting));
    held.filter_map(|one| {
        let owners = configuration.owners(&one.setting.knob, &|_| None);
        let last = owners.first().filter(|owner| !owner.place.starts_with(&persisted.path))?;
        Some(format!("{} is overruled at boot by {}, which sets {}", one.setting, last.place, last.value))
    })
    .collect()
}
