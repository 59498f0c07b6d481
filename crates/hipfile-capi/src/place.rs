//! Addresses that a program passes.

use std::ptr::NonNull;

use hipfile::Error;

/// The address of a record, neither NULL nor impossible.
pub(crate) fn place<T>(address: *const T, what: &'static str) -> Result<NonNull<T>, Error> {
    match NonNull::new(address.cast_mut()) {
        Some(address) if address.is_aligned() => Ok(address),
        _ => Err(Error::Argument { what }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn null_and_crooked_addresses_are_refused() {
        let records = [0_u64; 2];
        let crooked = records.as_ptr().map_addr(|address| address + 1);
        let error = Err(Error::Argument { what: "no" });
        assert_eq!(place(std::ptr::null::<u64>(), "no"), error);
        assert_eq!(place(crooked, "no"), error);
        assert_eq!(place(records.as_ptr(), "no").unwrap().as_ptr().cast_const(), records.as_ptr());
    }
}
