//! Pages of the documentation whose commands need no cluster, as they stand there.

use crate::follow::Page;
use anyhow::Result;

#[test]
fn page_new_driver_works_as_written() -> Result<()> {
    Page::open("new-driver.md")?.run_all()
}

#[test]
fn page_faq_works_as_written() -> Result<()> {
    Page::open("faq.md")?.run_all()
}
