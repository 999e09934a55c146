//! News of accounts of which other trees of the user tell while a tree is open.

use tokio::sync::watch;

use crate::message::link::Link;
use crate::message::{Message, TreeState};

/// Tells the supervisor of all that other trees tell, until its tree is over.
pub(super) fn follow(link: &Link, mut state: watch::Receiver<TreeState>) {
    let Some(board) = &link.tree.account_board else { return };
    let (mut told, sender) = (board.follow(), link.sender.downgrade());
    let is_over = |state: &TreeState| matches!(state, TreeState::Ended | TreeState::Broken(_));
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with the tree, and holds nothing of it"
    )]
    tokio::spawn(async move {
        loop {
            let news = tokio::select! {
                biased;
                // A sender that is gone says the same.
                _ = state.wait_for(is_over) => return,
                news = told.recv() => news,
            };
            let (Some(news), Some(sender)) = (news, sender.upgrade()) else { return };
            if sender.send(Message::AccountTold { news }).is_err() {
                return;
            }
        }
    });
}
