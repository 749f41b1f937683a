//! The options that a script declares.

use mlua::{Lua, Table, Value as LuaValue};
use weir_sysbench::options::Kind;
use weir_sysbench::script::ScriptOption;

/// Reads `sysbench.cmdline.options`.
pub(super) fn declared_options(lua: &Lua) -> mlua::Result<Option<Vec<ScriptOption>>> {
    let cmdline: Table = lua.globals().get::<Table>("sysbench")?.get("cmdline")?;
    let declared: LuaValue = cmdline.get("options")?;
    let table = match declared {
        LuaValue::Nil => return Ok(None),
        LuaValue::Table(table) => table,
        other => {
            let kind = other.type_name();
            return Err(mlua::Error::runtime(format!("wrong type for sysbench.cmdline.options: {kind}")));
        }
    };
    let mut options = Vec::new();
    for pair in table.pairs::<String, Table>() {
        let (name, definition) =
            pair.map_err(|_| mlua::Error::runtime("wrong table structure in sysbench.cmdline.options"))?;
        options.push(declared_option(name, &definition)?);
    }
    options.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(options))
}

fn declared_option(name: String, definition: &Table) -> mlua::Result<ScriptOption> {
    let about: Option<String> = definition.get(1)?;
    let about = about.ok_or_else(|| mlua::Error::runtime(format!("nil description for option {name}")))?;
    let value: LuaValue = definition.get(2)?;
    let kind: Option<u32> = definition.get(3)?;
    let of_value = match &value {
        LuaValue::Boolean(_) => Kind::Flag,
        LuaValue::Integer(_) | LuaValue::Number(_) => Kind::Double,
        LuaValue::Table(_) => Kind::List,
        _ => Kind::Text,
    };
    let kinds = [Kind::Flag, Kind::Int, Kind::Size, Kind::Double, Kind::Text, Kind::List, Kind::File];
    let kind = match kind {
        None => of_value,
        Some(number) => *kinds.get((number as usize).wrapping_sub(1)).ok_or_else(|| {
            mlua::Error::runtime(format!("cannot determine type for option {name}: {number} is none"))
        })?,
    };
    let default = match value {
        LuaValue::Nil => None,
        LuaValue::Boolean(true) => Some("on".to_string()),
        LuaValue::Boolean(false) => Some("off".to_string()),
        LuaValue::Integer(number) => Some(number.to_string()),
        LuaValue::Number(number) => Some(number.to_string()),
        LuaValue::String(text) => Some(text.to_string_lossy()),
        LuaValue::Table(list) => {
            let texts = list.sequence_values::<String>().collect::<mlua::Result<Vec<String>>>()?;
            Some(texts.join(","))
        }
        other => {
            let kind = other.type_name();
            return Err(mlua::Error::runtime(format!("the default of option {name} is a {kind}")));
        }
    };
    Ok(ScriptOption { name, kind, default, about })
}
