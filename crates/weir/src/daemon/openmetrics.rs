//! Pages of metrics in the OpenMetrics text format, version 1.0.0.
//! <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>

use std::fmt::{Display, Write};

/// Content type of a [`Page`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A page of metrics in the making.
#[derive(Default)]
pub struct Page(String);

/// Something that metrics are labelled with the device of.
pub trait OfDevice {
    /// The kernel's name of the device.
    fn device(&self) -> &str;
}

impl Page {
    /// Begins a family; what follows until the next one are its samples.
    pub fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    /// A sample of the family.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (nth, (label, value)) in labels.iter().enumerate() {
            let open = if nth == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A family of one sample without labels.
    pub fn one(&mut self, name: &str, kind: &str, unit: &str, help: &str, value: impl Display) {
        self.family(name, kind, unit, help);
        let suffix = if kind == "counter" { "_total" } else { "" };
        self.sample(&format!("{name}{suffix}"), &[], value);
    }

    /// A gauge of each device that has it.
    pub fn each<D: OfDevice, T: Display>(
        &mut self,
        name: &str,
        unit: &str,
        help: &str,
        devices: &[D],
        value: impl Fn(&D) -> Option<T>,
    ) {
        self.family(name, "gauge", unit, help);
        for device in devices {
            if let Some(value) = value(device) {
                self.sample(name, &[("device", device.device())], value);
            }
        }
    }

    /// A counter of each device.
    pub fn counter<D: OfDevice, T: Display>(
        &mut self,
        name: &str,
        unit: &str,
        help: &str,
        devices: &[D],
        value: impl Fn(&D) -> T,
    ) {
        self.family(name, "counter", unit, help);
        for device in devices {
            self.sample(&format!("{name}_total"), &[("device", device.device())], value(device));
        }
    }

    /// All of it.
    pub fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
pub mod testing;
