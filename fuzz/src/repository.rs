//! Repositories in memory, for the targets of the crate `survey`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::Cursor;

use fastpath_artifact::http::{
    Cache, Fetch, FetchError, Meter, Part, Request, Response, Validators,
};
use fastpath_survey::rpm::Access;

/// Where the repository says it is. Nothing is asked outside of memory.
pub const BASE: &str = "https://repository.invalid/core/os/x86_64/";

/// Files by their address below [`BASE`].
pub struct Files(pub BTreeMap<String, Vec<u8>>);

impl Fetch for Files {
    fn get(&self, request: &Request<'_>) -> Result<Response, FetchError> {
        let found = request.url.strip_prefix(BASE).and_then(|name| self.0.get(name));
        let Some(bytes) = found else {
            return Err(FetchError::Status {
                url: request.url.to_owned(),
                offset: 0,
                status: 404,
                tries: 1,
            });
        };
        Ok(Response {
            part: Part::Whole,
            url: request.url.to_owned(),
            length: Some(bytes.len() as u64),
            validators: Validators::default(),
            body: Box::new(Cursor::new(bytes.clone())),
        })
    }
}

impl Files {
    /// Does something with the repository, an empty cache beside it.
    pub fn with<T>(&self, work: impl FnOnce(&Access<'_>) -> T) -> T {
        let cache = Cache::temporary(false).expect("a temporary folder");
        let meter = Meter::default();
        work(&Access { fetch: self, cache: &cache, meter: &meter })
    }
}

/// An error says something, on one line. What else a terminal must not see is taken out where it is shown.
pub fn one_line(error: &dyn std::error::Error) {
    let error = error.to_string();
    assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
}

/// What holds of any comparison, on three values.
pub fn compared<T>(values: [&T; 3], compare: impl Fn(&T, &T) -> Ordering) {
    for [a, b] in [[0, 1], [1, 2], [2, 0], [0, 0]].map(|pair| pair.map(|index| values[index])) {
        assert_eq!(compare(a, b), compare(b, a).reverse());
    }
}

/// What holds of any order, on three values.
pub fn ordered<T>(values: [&T; 3], compare: impl Fn(&T, &T) -> Ordering) {
    compared(values, &compare);
    let [a, b, c] = values;
    for [a, b, c] in [[a, b, c], [b, c, a], [c, a, b], [c, b, a], [a, c, b], [b, a, c]] {
        if compare(a, b).is_le() && compare(b, c).is_le() {
            assert!(compare(a, c).is_le(), "not transitive");
            assert!(compare(a, c).is_lt() || (compare(a, b).is_eq() && compare(b, c).is_eq()));
        }
    }
}
