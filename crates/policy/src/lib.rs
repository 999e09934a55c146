//! Admission: one question, may this agent be spawned, answered with a reservation or a refusal.
