import { Anchor, Button, Collapse, FileButton, Group, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import type { Database } from "@/api/types";
import type { DatabaseFormValues, FormFaults, PemField } from "./form-values";

const pemLabels: Record<PemField, { label: string; description: string }> = {
  sslrootcert: {
    label: "Root certificate",
    description: "It must have issued the server's certificate (sslrootcert).",
  },
  sslcert: { label: "Client certificate", description: "Identifies this user to the server (sslcert)." },
  sslkey: {
    label: "Client key",
    description: "Key of the client certificate, without a passphrase (sslkey).",
  },
  sslcrl: { label: "Revocation list", description: "Certificates that are no longer valid (sslcrl)." },
};

interface CertificatesProps {
  values: DatabaseFormValues;
  faults: FormFaults;
  database: Database | null;
  onChange: (field: PemField, pem: string | null) => void;
}

/** PEM contents: the control plane keeps them encrypted and never shows them again. */
export function Certificates({ values, faults, database, onChange }: CertificatesProps) {
  const fields = Object.keys(pemLabels) as PemField[];
  const used = fields.some((field) => database?.[field] || values[field]);
  const [opened, setOpened] = useState(used);
  return (
    <Stack gap="xs">
      <Anchor
        component="button"
        type="button"
        size="sm"
        aria-expanded={opened}
        onClick={() => setOpened(!opened)}
      >
        {opened ? "Hide certificates and keys" : "Certificates and keys"}
      </Anchor>
      <Collapse expanded={opened}>
        <Stack gap="sm">
          {fields.map((field) => (
            <PemInput
              key={field}
              field={field}
              value={values[field]}
              fault={faults[field]}
              stored={database?.[field] ?? null}
              onChange={(pem) => onChange(field, pem)}
            />
          ))}
        </Stack>
      </Collapse>
    </Stack>
  );
}

interface PemInputProps {
  field: PemField;
  value: string | null;
  fault: string | undefined;
  stored: Database[PemField];
  onChange: (pem: string | null) => void;
}

function PemInput({ field, value, fault, stored, onChange }: PemInputProps) {
  const { label, description } = pemLabels[field];
  return (
    <Stack gap={4}>
      <Textarea
        label={label}
        description={description}
        placeholder={stored ? "Stored. Leave empty to keep it." : "-----BEGIN ..."}
        autosize
        minRows={2}
        maxRows={6}
        spellCheck={false}
        value={value ?? ""}
        error={fault}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <Group gap="xs">
        <FileButton
          onChange={async (file) => {
            if (file) onChange(await file.text());
          }}
        >
          {(button) => (
            <Button {...button} variant="default" size="compact-xs">
              Read a file
            </Button>
          )}
        </FileButton>
        {stored && value === "" && (
          <Button variant="default" size="compact-xs" onClick={() => onChange(null)}>
            Remove
          </Button>
        )}
        <Text size="xs">{value === null ? "Will be removed." : (stored && pemInWords(stored)) || ""}</Text>
      </Group>
    </Stack>
  );
}

export function pemInWords(stored: NonNullable<Database[PemField]>): string {
  const until = stored.expires_at ? `, until ${stored.expires_at.slice(0, 10)}` : "";
  return `Stored: ${stored.subject ?? "a key"}${until}.`;
}
