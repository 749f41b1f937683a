//! `weir report`: stored runs as pages, of this and of earlier schemas.

use std::fs;

use crate::weir::Weir;

const RECORD: &str = include_str!("../fixtures/record-1.json");
const ID: &str = "20261120-101112-131-1e57";

#[test]
fn a_stored_run_becomes_one_page_that_needs_nothing_else() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::write(weir.store().join(format!("{ID}.json")), RECORD).unwrap();
    let run = |arguments: &[&str]| weir.run(folder.path(), arguments);

    let printed = run(&["report", "last", "-o", "-"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    let page = &printed.stdout;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n") && page.len() < 1_000_000);
    for part in ["role=\"img\"", "How long operations took", "Conditions", "6.12.0-amd64", ID] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["http:", "https:", "<script", "<link", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }

    let file = format!("weir-fileio-{ID}.html");
    for _ in 0..2 {
        let written = run(&["report", "1e57"]);
        assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{written:?}");
        assert!(written.stderr.contains(&file), "{written:?}");
        assert_eq!(fs::read_to_string(folder.path().join(&file)).unwrap(), *page);
    }
}

#[test]
fn what_is_no_page_of_ours_is_left_alone() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::write(weir.store().join(format!("{ID}.json")), RECORD).unwrap();
    fs::write(folder.path().join("mine.html"), "<!doctype html>").unwrap();
    for (arguments, code, words) in [
        (&["report", "-o", "mine.html"][..], 2, "not a page of weir's"),
        (&["report", "-o", "/dev/null"], 2, "not a page of weir's"),
        (&["report", "nothing"], 2, "no run `nothing`"),
        (&["report", "-o", "no/such/folder/page.html"], 3, "cannot write"),
    ] {
        let ended = weir.run(folder.path(), arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(words) && ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("mine.html")).unwrap(), "<!doctype html>");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left");
}
