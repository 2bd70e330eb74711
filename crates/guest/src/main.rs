//! The guest's `/init`. All it does stands in the library: see [`pagetide_guest::init`].

fn main() {
    pagetide_guest::main();
}
