//! The command as users meet it. One snapshot is one use: what was typed, standard output, standard error, exit code.
//! Each use has a folder and an environment of its own.

mod command;
mod stage;

mod attacks;
mod audit;
mod claude;
mod cleanup;
mod config;
mod consent;
mod damage;
mod desk;
mod disk;
mod door;
mod endings;
mod fanout;
mod faults;
mod forged;
mod inputs;
mod interrupt;
mod invariants;
mod key;
mod look;
mod map;
mod mcp;
mod mcp_clients;
mod merge;
mod openai;
mod operator;
mod orphans;
mod plugin;
mod plugin_merges;
mod plugin_new;
mod prune;
mod readme;
mod recursion;
mod reports;
mod resume;
mod run;
mod sandbox;
mod security;
mod sessions;
mod slots;
mod trust;
mod usage;
mod wrap;
