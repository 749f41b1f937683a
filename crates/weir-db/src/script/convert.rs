//! The functions that a state's Lua calls, and values on their way between the two.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value as LuaValue};
use weir_sysbench::help;
use weir_sysbench::random::{self, Shape};
use weir_sysbench::script::OptionValue;

use super::declared::declared_options;
use super::modules;
use super::session::{Fault, Outcome, ScriptSession};
use crate::value::Value;

/// Parameters for which no memory is taken.
const FEW: usize = 24;

type Held = Rc<RefCell<ScriptSession>>;
/// A status, and what goes with it.
type Answer = (u8, LuaValue, LuaValue, LuaValue);

/// All functions by their names in the script that sets up a state.
pub(super) fn functions(lua: &Lua, session: &Held) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    sql_functions(lua, session, &table)?;
    bulk_functions(lua, session, &table)?;
    random_functions(lua, session, &table)?;
    table.set("module", lua.create_function(|_, name: String| Ok(modules::text(&name)))?)?;
    let held = session.clone();
    let beside = move |_: &Lua, name: String| {
        let found = modules::beside(&held.borrow().shared.source, &name);
        Ok(found.map_or((None, None), |(path, text)| (Some(path), Some(text))))
    };
    table.set("beside", lua.create_function(beside)?)?;
    let held = session.clone();
    table.set(
        "print_options",
        lua.create_function(move |lua, ()| {
            let options = declared_options(lua)?.unwrap_or_default();
            let name = held.borrow().shared.source.short_name().to_string();
            // Without the title, which the command `help` prints.
            let text = help::script(&name, &options);
            let lines = text.split_once('\n').map_or("", |(_, lines)| lines);
            lua.globals().get::<Function>("print")?.call::<()>(lines.trim_end())
        })?,
    )?;
    Ok(table)
}

fn sql_functions(lua: &Lua, session: &Held, table: &Table) -> mlua::Result<()> {
    let held = session.clone();
    let driver = move |_: &Lua, name: Option<String>| Ok(held.borrow().driver(name.as_deref()));
    table.set("driver", lua.create_function(driver)?)?;
    let held = session.clone();
    let connect = move |_: &Lua, driver: String| Ok(held.borrow_mut().connect(&driver));
    table.set("connect", lua.create_function(connect)?)?;
    let held = session.clone();
    table.set(
        "disconnect",
        // Called when garbage is collected too, which may be in the middle of another call.
        lua.create_function(move |_, link: usize| {
            if let Ok(mut session) = held.try_borrow_mut() {
                session.disconnect(link);
            }
            Ok(())
        })?,
    )?;
    let held = session.clone();
    table.set(
        "reconnect",
        lua.create_function(move |_, link: usize| Ok(held.borrow_mut().reconnect(link)))?,
    )?;
    let held = session.clone();
    let keep_rows = move |_: &Lua, ()| {
        held.borrow_mut().keep_rows();
        Ok(())
    };
    table.set("keep_rows", lua.create_function(keep_rows)?)?;
    let held = session.clone();
    table.set(
        "query",
        lua.create_function(move |lua, (link, sql, fetches): (usize, LuaString, bool)| {
            let outcome = held.borrow_mut().query(link, &sql.to_str()?, fetches);
            answer(lua, outcome)
        })?,
    )?;
    let held = session.clone();
    table.set(
        "prepare",
        lua.create_function(move |lua, (link, sql): (usize, LuaString)| {
            let prepared = held.borrow_mut().prepare(link, &sql.to_str()?);
            Ok(match prepared {
                Ok(handle) => (Some(handle), LuaValue::Nil, LuaValue::Nil, LuaValue::Nil),
                Err(None) => (None, LuaValue::Nil, LuaValue::Nil, LuaValue::Nil),
                Err(Some(fault)) => {
                    let (_, number, state, message) = failure(lua, 3, &fault)?;
                    (None, number, state, message)
                }
            })
        })?,
    )?;
    let held = session.clone();
    table.set("execute", lua.create_function(move |lua, args: MultiValue| execute(lua, &held, &args))?)?;
    let held = session.clone();
    let close = move |_: &Lua, statement: usize| {
        held.borrow_mut().close(statement);
        Ok(())
    };
    table.set("close", lua.create_function(close)?)?;
    let held = session.clone();
    table.set(
        "fetch",
        lua.create_function(move |lua, link: usize| {
            let Some(row) = held.borrow_mut().fetch(link) else { return Ok(None) };
            let fields = lua.create_table_with_capacity(row.len(), 0)?;
            for (index, field) in row.into_iter().enumerate().filter_map(|(i, f)| f.map(|f| (i, f))) {
                fields.raw_set(index + 1, field)?;
            }
            Ok(Some(fields))
        })?,
    )?;
    let held = session.clone();
    let free = move |_: &Lua, link: usize| {
        held.borrow_mut().free(link);
        Ok(())
    };
    table.set("free", lua.create_function(free)?)
}

fn bulk_functions(lua: &Lua, session: &Held, table: &Table) -> mlua::Result<()> {
    let held = session.clone();
    table.set(
        "bulk_init",
        lua.create_function(move |_, (link, sql): (usize, LuaString)| {
            Ok(held.borrow_mut().bulk_init(link, &sql.to_str()?))
        })?,
    )?;
    let held = session.clone();
    table.set(
        "bulk_next",
        lua.create_function(move |_, (link, row): (usize, LuaString)| {
            Ok(held.borrow_mut().bulk_next(link, &row.to_str()?))
        })?,
    )?;
    let held = session.clone();
    table.set("bulk_done", lua.create_function(move |_, link: usize| Ok(held.borrow_mut().bulk_done(link)))?)
}

fn random_functions(lua: &Lua, session: &Held, table: &Table) -> mlua::Result<()> {
    let shape = session.borrow().shared.random.shape;
    for (name, shape) in Shape::ALL.into_iter().chain([("default", shape)]) {
        let held = session.clone();
        let draw = move |_: &Lua, (from, to): (f64, f64)| {
            let session = &mut *held.borrow_mut();
            let random = session.shared.random;
            Ok(random.shaped(shape, word(from), word(to), &mut session.rng))
        };
        table.set(name, lua.create_function(draw)?)?;
    }
    let held = session.clone();
    let unique = move |_: &Lua, ()| {
        let session = held.borrow();
        let shared = &session.shared;
        Ok(shared.unique.nth(shared.unique_taken.fetch_add(1, Ordering::Relaxed)))
    };
    table.set("unique", lua.create_function(unique)?)?;
    let held = session.clone();
    table.set("unit", lua.create_function(move |_, ()| Ok(held.borrow_mut().rng.unit()))?)?;
    let held = session.clone();
    let halves = move |_: &Lua, ()| {
        let bits = held.borrow_mut().rng.next_u64();
        Ok(((bits >> 32) as u32, bits as u32))
    };
    table.set("halves", lua.create_function(halves)?)?;
    let held = session.clone();
    let scratch = RefCell::new(Vec::new());
    table.set(
        "string",
        lua.create_function(move |lua, pattern: LuaString| {
            let mut text = scratch.borrow_mut();
            text.clear();
            random::text(&pattern.as_bytes(), &mut held.borrow_mut().rng, &mut text);
            lua.create_string(text.as_slice())
        })?,
    )
}

/// A number of Lua's as C takes it for 32 bits: its fraction cut off, its sign wrapped.
fn word(number: f64) -> u32 {
    number as i64 as u32
}

/// Executes a prepared statement: its number, then the values.
fn execute(lua: &Lua, held: &Held, args: &MultiValue) -> mlua::Result<Answer> {
    let statement = match args.front() {
        Some(LuaValue::Integer(number)) => *number as usize,
        Some(LuaValue::Number(number)) => *number as usize,
        _ => usize::MAX,
    };
    let given = args.len().saturating_sub(1);
    let texts = args.iter().skip(1).filter_map(text_of).collect::<mlua::Result<Vec<_>>>()?;
    let mut few = [Value::Null; FEW];
    let mut many;
    let values: &mut [Value<'_>] = if given <= FEW {
        &mut few[..given]
    } else {
        many = vec![Value::Null; given];
        &mut many
    };
    let mut next_text = texts.iter();
    for (value, argument) in values.iter_mut().zip(args.iter().skip(1)) {
        *value = match argument {
            LuaValue::Integer(number) => Value::Int(*number),
            LuaValue::Number(number) => Value::Float(*number),
            LuaValue::Boolean(flag) => Value::Int(i64::from(*flag)),
            LuaValue::String(_) => next_text.next().map_or(Value::Null, |text| Value::Text(text)),
            _ => Value::Null,
        };
    }
    let outcome = held.borrow_mut().execute(statement, values);
    answer(lua, outcome)
}

fn text_of(value: &LuaValue) -> Option<mlua::Result<mlua::BorrowedStr>> {
    match value {
        LuaValue::String(text) => Some(text.to_str()),
        _ => None,
    }
}

fn answer(lua: &Lua, outcome: Outcome) -> mlua::Result<Answer> {
    let nil = LuaValue::Nil;
    Ok(match outcome {
        Outcome::Nothing => (0, nil.clone(), nil.clone(), nil),
        Outcome::Rows { rows, fields } => {
            (1, LuaValue::Integer(rows as i64), LuaValue::Integer(fields as i64), nil)
        }
        Outcome::Ignorable(fault) => failure(lua, 2, &fault)?,
        Outcome::Fatal(fault) => failure(lua, 3, &fault)?,
        Outcome::Closed => (4, nil.clone(), nil.clone(), nil),
    })
}

fn failure(lua: &Lua, status: u8, fault: &Fault) -> mlua::Result<Answer> {
    Ok((
        status,
        LuaValue::Integer(i64::from(fault.number)),
        LuaValue::String(lua.create_string(&fault.state)?),
        LuaValue::String(lua.create_string(&fault.message)?),
    ))
}

/// An option as Lua sees it.
pub(super) fn option(lua: &Lua, value: &OptionValue) -> mlua::Result<LuaValue> {
    Ok(match value {
        OptionValue::Flag(flag) => LuaValue::Boolean(*flag),
        OptionValue::Number(number) => LuaValue::Number(*number),
        OptionValue::Text(text) => LuaValue::String(lua.create_string(text)?),
        OptionValue::List(texts) => {
            LuaValue::Table(lua.create_sequence_from(texts.iter().map(String::as_str))?)
        }
    })
}
