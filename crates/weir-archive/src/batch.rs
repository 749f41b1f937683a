//! Rows of one table, column by column. Names stand once and are referred to by number: an hour of rows has a few dozen.

use std::collections::HashMap;

use crate::tables::{Kind, Table};

/// Rows of a table.
#[derive(Debug, Clone)]
pub struct Batch {
    table: &'static Table,
    columns: Vec<Column>,
}

/// One column of a batch.
#[derive(Debug, Clone)]
pub enum Column {
    /// Numbers.
    Integers(Vec<i64>),
    /// Names.
    Texts(Texts),
}

/// Names, each kept once.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    words: Vec<String>,
    places: HashMap<String, u32>,
    codes: Vec<u32>,
    bytes: usize,
}

impl Texts {
    /// The different names, in the order in which they first came.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Of each row, the place of its name among [`Texts::words`].
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The name in a row; empty beyond the last.
    pub fn get(&self, row: usize) -> &str {
        self.codes.get(row).and_then(|code| self.words.get(*code as usize)).map_or("", String::as_str)
    }

    /// Length of the names of all rows, each as often as it stands there.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row.
    pub fn push(&mut self, word: &str) {
        let code = self.code(word);
        self.codes.push(code);
        self.bytes = self.bytes.saturating_add(word.len());
    }

    /// Adds rows that are places among other words; false, and none, where one is beyond them. Each word is looked for once, and
    /// one that no row has is not kept.
    pub fn extend(&mut self, words: &[String], places: &[u32]) -> bool {
        if places.iter().any(|place| *place as usize >= words.len()) {
            return false;
        }
        let mut codes = vec![None; words.len()];
        for place in places.iter().map(|place| *place as usize) {
            let code = *codes[place].get_or_insert_with(|| self.code(&words[place]));
            self.codes.push(code);
            self.bytes = self.bytes.saturating_add(words[place].len());
        }
        true
    }

    /// The place of a word, which it has from now on.
    fn code(&mut self, word: &str) -> u32 {
        match self.places.get(word) {
            Some(code) => *code,
            None => {
                let code = self.words.len() as u32;
                self.words.push(word.to_string());
                self.places.insert(word.to_string(), code);
                code
            }
        }
    }
}

impl Column {
    /// One without rows.
    pub fn new(kind: Kind) -> Column {
        match kind {
            Kind::Integer => Column::Integers(Vec::new()),
            Kind::Text => Column::Texts(Texts::default()),
        }
    }

    /// One of rows that say nothing, 0 or empty: of a file that an older version wrote.
    pub fn absent(kind: Kind, rows: usize) -> Column {
        let mut column = Column::new(kind);
        (0..rows).for_each(|_| column.push_text(""));
        column
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        match self {
            Column::Integers(_) => Kind::Integer,
            Column::Texts(_) => Kind::Text,
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Integers(values) => values.len(),
            Column::Texts(texts) => texts.codes.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number in a row; 0 where there is none.
    pub fn integer(&self, row: usize) -> i64 {
        match self {
            Column::Integers(values) => values.get(row).copied().unwrap_or(0),
            Column::Texts(_) => 0,
        }
    }

    /// The name in a row; empty where there is none.
    pub fn text(&self, row: usize) -> &str {
        match self {
            Column::Integers(_) => "",
            Column::Texts(texts) => texts.get(row),
        }
    }

    /// Adds a row; of a column of names, the number is 0's place: an empty name.
    pub fn push_integer(&mut self, value: i64) {
        match self {
            Column::Integers(values) => values.push(value),
            Column::Texts(texts) => texts.push(""),
        }
    }

    /// Adds a row.
    pub fn push_text(&mut self, word: &str) {
        match self {
            Column::Integers(values) => values.push(0),
            Column::Texts(texts) => texts.push(word),
        }
    }

    fn append(&mut self, other: &Column) {
        match (self, other) {
            (Column::Integers(mine), Column::Integers(theirs)) => mine.extend(theirs),
            (Column::Texts(mine), Column::Texts(theirs)) => _ = mine.extend(&theirs.words, &theirs.codes),
            (mine, theirs) => (0..theirs.len()).for_each(|row| mine.push_text(theirs.text(row))),
        }
    }
}

impl Batch {
    /// One without rows.
    pub fn new(table: &'static Table) -> Batch {
        Batch { table, columns: table.columns.iter().map(|column| Column::new(column.kind)).collect() }
    }

    /// One of these columns, in the table's order; `None` unless they fit the table and are of one length.
    pub fn of_columns(table: &'static Table, columns: Vec<Column>) -> Option<Batch> {
        let fits = columns.len() == table.columns.len()
            && columns.iter().zip(table.columns).all(|(column, spec)| column.kind() == spec.kind)
            && columns.iter().all(|column| column.len() == columns[0].len());
        fits.then_some(Batch { table, columns })
    }

    /// Whose rows these are.
    pub fn table(&self) -> &'static Table {
        self.table
    }

    /// How many.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Length of the names of the column that has most of them, each as often as it stands there.
    pub fn names_bytes(&self) -> usize {
        let of = |column: &Column| if let Column::Texts(texts) = column { texts.bytes() } else { 0 };
        self.columns.iter().map(of).max().unwrap_or(0)
    }

    /// The columns, in the table's order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns, to add to each.
    pub fn columns_mut(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let at = self.table.columns.iter().position(|column| column.name == name)?;
        self.columns.get(at)
    }

    /// Adds the rows of another batch of the same table.
    pub fn append(&mut self, other: &Batch) {
        debug_assert_eq!(self.table.name, other.table.name);
        self.columns.iter_mut().zip(&other.columns).for_each(|(mine, theirs)| mine.append(theirs));
    }
}

impl PartialEq for Batch {
    /// By what the rows say.
    fn eq(&self, other: &Batch) -> bool {
        let same = |(mine, theirs): (&Column, &Column)| {
            mine.len() == theirs.len()
                && (0..mine.len())
                    .all(|row| mine.integer(row) == theirs.integer(row) && mine.text(row) == theirs.text(row))
        };
        self.table.name == other.table.name && self.columns.iter().zip(&other.columns).all(same)
    }
}
