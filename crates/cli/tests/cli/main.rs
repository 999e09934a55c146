//! The command as users meet it. One snapshot is one use: what was typed, standard output, standard error, exit code.
//! Each use has a folder and an environment of its own.

mod command;

mod config;
mod key;
mod merge;
mod trust;
mod usage;
