//! Configuration of offshoot: schema, layers and resolution, where every value knows its origin.
