"""Three readers of one archive: weir's export, DuckDB and pyarrow must agree on rows and sums of every table."""

import csv
import glob
import io
import subprocess
import sys

import duckdb
import pyarrow.parquet

weir, folder = sys.argv[1], sys.argv[2]
TABLES = {
    "stages": "count",
    "syncs": "count",
    "waits": "ns",
    "behind": "bytes",
    "processes": "written_bytes",
    "counters": "value",
    "events": "took_ns",
}
failed = False
print(f"{'table':10} {'files':>5} {'rows':>9} {'sum of':>14} {'weir':>20} {'duckdb':>20} {'pyarrow':>20}")
for table, column in TABLES.items():
    files = glob.glob(f"{folder}/{table}-*.parquet")
    if not files:
        print(f"{table:10} no file")
        continue
    text = subprocess.run(
        [weir, "recorder", "export", table, "--since", "2000-01-01 00:00", "--dir", folder],
        check=True, capture_output=True, text=True,
    ).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    own = (len(rows), sum(int(row[column]) for row in rows))
    query = f"select count(*), sum({column})::hugeint from read_parquet({files!r})"
    count, total = duckdb.sql(query).fetchall()[0]
    arrow = [pyarrow.parquet.ParquetFile(file).read() for file in files]
    by_arrow = (sum(one.num_rows for one in arrow), sum(sum(one[column].to_pylist()) for one in arrow))
    agree = own == (count, int(total or 0)) == by_arrow
    failed |= not agree
    word = "" if agree else "  DIFFER"
    print(f"{table:10} {len(files):5} {own[0]:9} {column:>14} {own[1]:20} {int(total or 0):20} {by_arrow[1]:20}{word}")
if not failed and glob.glob(f"{folder}/syncs-*.parquet"):
    print(duckdb.sql(
        f"select comm, unit, sum(count)::bigint as syncs, min(bucket_low_ns) as least_ns, max(bucket_low_ns) as most_ns "
        f"from read_parquet('{folder}/syncs-*.parquet') group by all order by 3 desc limit 5"
    ))
sys.exit(failed)
