-- Small files beside the records: certificates, whose runs are never thinned.
CREATE TABLE optrail.documents (
  folder text NOT NULL CHECK (folder IN ('certificates')),
  name text NOT NULL CHECK (name ~ '^[^./][^/]{0,199}$'),
  bytes bytea NOT NULL CHECK (octet_length(bytes) <= 16777216),
  written timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (folder, name)
);
