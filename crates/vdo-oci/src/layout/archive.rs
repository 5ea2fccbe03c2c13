// SPDX-License-Identifier: Apache-2.0
//! Packs an image layout into a reproducible tar archive (`Layout::pack`); `store.rs` reads such an archive.

use super::error::io;
use super::{Layout, LayoutError, blob};
use std::io::{Read, Write};
use std::path::Path;

impl Layout {
    /// Writes the layout into a tar archive: the same layout is the same archive. The file appears when it is complete.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn pack(&self, target: &Path) -> Result<(), LayoutError> {
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut new = blob::beside(folder)?;
        let mut names = vec!["oci-layout".to_owned(), "index.json".to_owned()];
        let mut blobs = self.store.blobs()?;
        blobs.sort_unstable();
        names.extend(blobs.into_iter().map(|name| format!("{}/{name}", super::BLOBS)));
        let mut archive = tar::Builder::new(std::io::BufWriter::new(new.file()));
        for name in names {
            let file = self.store.open(&name)?;
            let mut header = tar::Header::new_ustar();
            let size = self.store.size(&name).unwrap_or_default();
            header.set_size(size);
            header.set_mode(0o644);
            header.set_entry_type(tar::EntryType::Regular);
            archive.append_data(&mut header, &name, file.take(size)).map_err(io(target))?;
        }
        let mut buffered = archive.into_inner().map_err(io(target))?;
        buffered.flush().map_err(io(target))?;
        drop(buffered);
        new.finish(target).map_err(io(target))
    }
}
