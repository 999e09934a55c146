//! Records that were changed by a party that can write the database and knows how its chain is made.

use rusqlite::{Connection, params};

use crate::command::Place;

/// Changes the record by a statement, and makes every chain anew as if that had been recorded.
pub(crate) fn forge(place: &Place, statement: &str) {
    let mut database =
        Connection::open(place.path().join(".offshoot/offshoot.db")).expect("a record");
    let change = database.transaction().expect("the record cannot be written");
    change.execute_batch(statement).expect("statements");
    let roots: Vec<(i64, [u8; 16])> = {
        let mut select = change.prepare("SELECT number, root FROM roots").expect("a table");
        let rows = select
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("the rows cannot be read");
        rows.collect::<Result<_, _>>().expect("the rows cannot be read")
    };
    for (number, root) in roots {
        let rows: Vec<(i64, [u8; 16], i64, String)> = {
            let sql = "SELECT seq, run, at, body FROM events WHERE root = ?1 ORDER BY seq";
            let mut select = change.prepare(sql).expect("a table");
            let read =
                |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            let rows = select.query_map([number], read).expect("the rows cannot be read");
            rows.collect::<Result<_, _>>().expect("the rows cannot be read")
        };
        let mut link = [0; 32];
        let (mut last_seq, mut last_at) = (0, 0);
        for (seq, run, at, body) in rows {
            let mut digest = blake3::Hasher::new();
            digest.update(&root).update(&seq.to_le_bytes()).update(&run);
            digest.update(&at.to_le_bytes()).update(body.as_bytes());
            let both = [link, *digest.finalize().as_bytes()].concat();
            link = *blake3::hash(&both).as_bytes();
            let update = "UPDATE events SET chain = ?3 WHERE root = ?1 AND seq = ?2";
            change.execute(update, params![number, seq, link]).expect("a row");
            (last_seq, last_at) = (seq, at);
        }
        let update = "UPDATE roots SET last_seq = ?2, chain = ?3, last_at = ?4 WHERE number = ?1";
        change.execute(update, params![number, last_seq, link, last_at]).expect("a row");
    }
    change.commit().expect("the record cannot be written");
}
