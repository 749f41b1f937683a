//! A command line whose test is a Lua script: what can be known before the script is read, and what its own options
//! mean afterwards.

use super::general::General;
use super::log::{Log, Quit};
use super::options::{self, Kind};
use super::values::Values;

/// An option that a script declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOption {
    /// As the script spells it.
    pub name: String,
    /// How its value is read.
    pub kind: Kind,
    /// Its value when not given; `None` shows no default.
    pub default: Option<String>,
    /// One line for lists of options.
    pub about: String,
}

/// An option's value as scripts see it.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// A flag.
    Flag(bool),
    /// A number, or a size in bytes.
    Number(f64),
    /// A text.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

/// A script that is to be run, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptRequest {
    /// The options of every test.
    pub general: General,
    /// The script: a file, or the name of a module.
    pub test: String,
    /// What to do with it; scripts do without where they only want to be read.
    pub command: Option<String>,
    /// All options so far.
    pub values: Values,
    /// `name=value` of options that only the script can know.
    pub pending: Vec<String>,
}

impl ScriptRequest {
    /// Reads the options that were left for the script. A script that declares none (`None`) gets every one of them
    /// as a text, as in sysbench.
    pub fn read_pending(&mut self, declared: Option<&[ScriptOption]>, log: &mut Log<'_>) -> Result<(), Quit> {
        for option in &self.pending {
            let (name, value) = options::split(option);
            let kind = match declared {
                Some(declared) => declared.iter().find(|d| options::same_name(&d.name, name)).map(|d| d.kind),
                None => Some(Kind::Text),
            };
            let taken = kind.is_some_and(|kind| self.values.set(name, value, kind));
            if !taken {
                return Err(log.usage(format!("invalid option: --{option}")));
            }
        }
        for option in declared.unwrap_or_default() {
            self.values.take_unknown(&option.name, option.kind);
            self.values.default_of(&option.name, option.default.as_deref(), option.kind);
        }
        Ok(())
    }

    /// Every option by its name with underscores, as the script is to see it.
    pub fn exported(
        &self,
        declared: Option<&[ScriptOption]>,
        log: &mut Log<'_>,
    ) -> Result<Vec<(String, OptionValue)>, Quit> {
        let known = options::general().chain(options::database()).map(|known| (known.name, known.kind));
        let own = declared.unwrap_or_default().iter().map(|option| (option.name.as_str(), option.kind));
        let legacy = self.pending.iter().filter(|_| declared.is_none());
        let legacy = legacy.map(|option| (options::split(option).0, Kind::Text));
        let mut all = Vec::new();
        for (name, kind) in known.chain(own).chain(legacy) {
            if let Some(value) = self.value(name, kind, log)? {
                all.push((name.replace('-', "_"), value));
            }
        }
        Ok(all)
    }

    fn value(&self, name: &str, kind: Kind, log: &mut Log<'_>) -> Result<Option<OptionValue>, Quit> {
        let general = &self.general;
        // An old spelling of these acts under the new name.
        let resolved = match name {
            "threads" => Some(f64::from(general.threads)),
            "events" => Some(general.events as f64),
            "time" => Some(general.time_s as f64),
            "rate" => Some(f64::from(general.rate)),
            "verbosity" if general.debug => Some(5.0),
            _ => None,
        };
        Ok(Some(match kind {
            _ if resolved.is_some() => OptionValue::Number(resolved.unwrap_or_default()),
            Kind::Flag => OptionValue::Flag(self.values.flag(name)),
            Kind::Int => OptionValue::Number(f64::from(self.values.int(name, log)?)),
            Kind::Double => OptionValue::Number(self.values.double(name, log)?),
            Kind::Size => OptionValue::Number(self.values.size(name) as f64),
            Kind::Text => OptionValue::Text(self.values.text(name).unwrap_or("").to_string()),
            Kind::List => OptionValue::List(self.values.list(name).to_vec()),
            Kind::File => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Request, parse};
    use crate::log::Kept;

    fn request(line: &str) -> ScriptRequest {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let config = |_: &str| Ok("table-size=7\nbogus=1\nthreads=5\n".to_string());
        let mut kept = Kept::default();
        match parse(&words, &config, &mut Log::new(&mut kept)) {
            Ok(Request::Script(request)) => *request,
            other => panic!("{line}: {other:?} {}{}", kept.out, kept.err),
        }
    }

    fn declared() -> Vec<ScriptOption> {
        let option = |name: &str, kind, default: Option<&str>| ScriptOption {
            name: name.to_string(),
            kind,
            default: default.map(str::to_string),
            about: String::new(),
        };
        vec![
            option("table_size", Kind::Double, Some("10000")),
            option("range_selects", Kind::Flag, Some("on")),
            option("names", Kind::List, Some("a,b")),
            option("plain", Kind::Text, None),
        ]
    }

    fn exported(line: &str, declared: Option<&[ScriptOption]>) -> Vec<(String, OptionValue)> {
        let mut kept = Kept::default();
        let mut log = Log::new(&mut kept);
        let mut request = request(line);
        request.read_pending(declared, &mut log).unwrap();
        request.exported(declared, &mut log).unwrap()
    }

    fn get(all: &[(String, OptionValue)], name: &str) -> Option<OptionValue> {
        all.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn scripts_see_all_options() {
        let own = declared();
        let all = exported(
            "my.lua --num-threads=3 --table-size=2e3 --range_selects=off --names=x,y --mysql-db=d run",
            Some(&own),
        );
        let number = |value: f64| Some(OptionValue::Number(value));
        assert_eq!(get(&all, "table_size"), number(2000.0));
        assert_eq!(get(&all, "threads"), number(3.0));
        assert_eq!(get(&all, "percentile"), number(95.0));
        assert_eq!(get(&all, "range_selects"), Some(OptionValue::Flag(false)));
        assert_eq!(get(&all, "names"), Some(OptionValue::List(vec!["x".into(), "y".into()])));
        assert_eq!(get(&all, "plain"), Some(OptionValue::Text(String::new())));
        assert_eq!(get(&all, "mysql_db"), Some(OptionValue::Text("d".into())));
        assert_eq!(get(&all, "db_driver"), Some(OptionValue::Text("mysql".into())));
        let legacy = exported("old.lua --oltp-table-size=9 run", None);
        assert_eq!(get(&legacy, "oltp_table_size"), Some(OptionValue::Text("9".into())));
    }

    #[test]
    fn a_configuration_file_reaches_the_scripts_options() {
        let own = declared();
        let all = exported("my.lua --config-file=x run", Some(&own));
        assert_eq!(get(&all, "table_size"), Some(OptionValue::Number(7.0)));
        assert_eq!(get(&all, "threads"), Some(OptionValue::Number(5.0)));
        let given = exported("my.lua --config-file=x --table_size=8 run", Some(&own));
        assert_eq!(get(&given, "table_size"), Some(OptionValue::Number(8.0)));
    }

    #[test]
    fn options_nobody_declares_are_refused() {
        let mut kept = Kept::default();
        let mut log = Log::new(&mut kept);
        let mut request = request("my.lua --bogus=1 run");
        assert_eq!(request.read_pending(Some(&declared()), &mut log), Err(Quit(1)));
        assert_eq!(kept.err, "invalid option: --bogus=1\n");
    }
}
