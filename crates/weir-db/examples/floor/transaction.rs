//! One transaction of sysbench's oltp_read_write on one table, every time on the same rows, so that every time the same
//! bytes go to and fro.

use weir_db::{Connection, DbError, StatementId, Value};
use weir_oltp::Dialect;

const ROWS: i64 = 10_000;
const TABLE: &str = "floor_of_weir";

/// Makes the table, as sysbench's are.
pub fn prepare_table(connection: &mut Connection) -> Result<(), DbError> {
    connection.run(&format!(
        "CREATE TABLE {TABLE} (id INTEGER NOT NULL PRIMARY KEY, k INTEGER DEFAULT 0 NOT NULL,
         c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)"
    ))?;
    let mut id = 0;
    connection.load(TABLE, "id, k, c, pad", &mut |out| {
        id += 1;
        let (c, pad) = (text(id, 119), text(id, 59));
        out.extend_from_slice(format!("{id}\t{}\t{c}\t{pad}\n", id * 7919 % ROWS + 1).as_bytes());
        id < ROWS
    })?;
    connection.run(&format!("CREATE INDEX k_of_{TABLE} ON {TABLE}(k)")).map(drop)
}

/// Groups of digits, like sysbench's.
fn text(seed: i64, chars: usize) -> String {
    let group = format!("{:011}-", seed * 48_271 % 99_999_999_977);
    group.chars().cycle().take(chars).collect()
}

/// The statements, prepared, and what each is executed with.
pub struct Transaction {
    steps: Vec<(StatementId, Vec<Bound>)>,
    begin_and_commit: Option<[&'static str; 2]>,
}

enum Bound {
    Int(i64),
    Text(String),
}

impl Bound {
    fn value(&self) -> Value<'_> {
        match self {
            Bound::Int(number) => Value::Int(*number),
            Bound::Text(text) => Value::Text(text),
        }
    }
}

impl Transaction {
    /// Prepares everything in this connection: BEGIN and COMMIT too where sysbench does.
    pub fn prepare(connection: &mut Connection) -> Result<Transaction, DbError> {
        let mysql = connection.dialect() == Dialect::MySql;
        let mut steps = Vec::new();
        let mut add = |sql: &str, rounds: Vec<Vec<Bound>>| -> Result<(), DbError> {
            let placeholders = ["$1", "$2", "$3", "$4"].into_iter();
            let sql = placeholders
                .fold(sql.to_string(), |sql, name| if mysql { sql.replace(name, "?") } else { sql });
            let statement = connection.prepare(&sql)?;
            steps.extend(rounds.into_iter().map(|values| (statement, values)));
            Ok(())
        };
        if mysql {
            add("BEGIN", vec![vec![]])?;
        }
        let points = (0..10).map(|n| vec![Bound::Int(4000 + n * 131)]).collect();
        add(&format!("SELECT c FROM {TABLE} WHERE id=$1"), points)?;
        for (what, order) in [("c", ""), ("SUM(k)", ""), ("c", "ORDER BY c"), ("DISTINCT c", "ORDER BY c")] {
            let sql = format!("SELECT {what} FROM {TABLE} WHERE id BETWEEN $1 AND $2 {order}");
            add(&sql, vec![vec![Bound::Int(5000), Bound::Int(5099)]])?;
        }
        add(&format!("UPDATE {TABLE} SET k=k+1 WHERE id=$1"), vec![vec![Bound::Int(5050)]])?;
        let updated = vec![Bound::Text(text(7, 119)), Bound::Int(5051)];
        add(&format!("UPDATE {TABLE} SET c=$1 WHERE id=$2"), vec![updated])?;
        add(&format!("DELETE FROM {TABLE} WHERE id=$1"), vec![vec![Bound::Int(5052)]])?;
        let row =
            vec![Bound::Int(5052), Bound::Int(5000), Bound::Text(text(1, 119)), Bound::Text(text(2, 59))];
        add(&format!("INSERT INTO {TABLE} (id, k, c, pad) VALUES ($1, $2, $3, $4)"), vec![row])?;
        if mysql {
            add("COMMIT", vec![vec![]])?;
        }
        let begin_and_commit = (!mysql).then_some(["BEGIN", "COMMIT"]);
        Ok(Transaction { steps, begin_and_commit })
    }

    /// Runs it once.
    pub fn run(&self, connection: &mut Connection) -> Result<(), DbError> {
        if let Some([begin, _]) = self.begin_and_commit {
            connection.run(begin)?;
        }
        for (statement, values) in &self.steps {
            match values.as_slice() {
                [] => connection.execute(*statement, &[])?,
                [a] => connection.execute(*statement, &[a.value()])?,
                [a, b] => connection.execute(*statement, &[a.value(), b.value()])?,
                [a, b, c, d, ..] => {
                    connection.execute(*statement, &[a.value(), b.value(), c.value(), d.value()])?
                }
                [..] => continue,
            };
        }
        if let Some([_, commit]) = self.begin_and_commit {
            connection.run(commit)?;
        }
        Ok(())
    }
}
