import {
  Button,
  Drawer,
  Group,
  PasswordInput,
  Select,
  Stack,
  Switch,
  TagsInput,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import { useCreateChannel, useUpdateChannel } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { AlertChannel } from "@/api/types";
import type { RestCallSpec } from "@/lib/curl";
import { PortInput } from "@/ui/port-input";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import {
  type ChannelForm,
  channelFaults,
  emptyChannel,
  toChannelCreate,
  toChannelForm,
  toChannelUpdate,
} from "./channel-form";

interface ChannelDrawerProps {
  opened: boolean;
  /** Null: a new one. */
  channel: AlertChannel | null;
  onClose: () => void;
}

export function ChannelDrawer(props: ChannelDrawerProps) {
  return (
    <Drawer
      opened={props.opened}
      onClose={props.onClose}
      title={props.channel ? `Edit ${props.channel.name}` : "Add channel"}
    >
      <Fields key={props.channel?.id ?? "new"} {...props} />
    </Drawer>
  );
}

const kinds = [
  { value: "webhook", label: "Webhook" },
  { value: "email", label: "E-mail" },
  { value: "log", label: "Log" },
];
const securities = [
  { value: "starttls", label: "STARTTLS (587)" },
  { value: "tls", label: "TLS (465)" },
  { value: "plain", label: "Plain (25)" },
];

function Fields({ channel, onClose }: ChannelDrawerProps) {
  const [form, setForm] = useState<ChannelForm>(() => (channel ? toChannelForm(channel) : emptyChannel));
  const [checked, setChecked] = useState(false);
  const create = useCreateChannel();
  const update = useUpdateChannel();
  const saving = channel ? update : create;
  const faults = channelFaults(form);
  const shown = checked ? faults : {};
  const set = <Field extends keyof ChannelForm>(field: Field, value: ChannelForm[Field]) =>
    setForm((now) => ({ ...now, [field]: value }));
  const text = (field: "name" | "url" | "host" | "user" | "sender") => ({
    value: form[field],
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => set(field, event.currentTarget.value),
    error: shown[field],
  });
  const secret = {
    description: channel?.has_secret
      ? "Leave empty to keep the stored value. It is needed again with another host, port or user, or less TLS."
      : undefined,
    autoComplete: "new-password",
    value: form.secret,
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => set("secret", event.currentTarget.value),
  };
  const hidden = form.secret ? { ...form, secret: "********" } : form;
  const call: RestCallSpec = channel
    ? {
        method: "PATCH",
        path: `/api/v1/alerts/channels/${channel.id}`,
        headers: { "If-Match": channel.etag },
        body: toChannelUpdate(hidden),
      }
    : { method: "POST", path: "/api/v1/alerts/channels", body: toChannelCreate(hidden) };
  const save = () => {
    const done = { onSuccess: onClose };
    if (channel) update.mutate({ id: channel.id, etag: channel.etag, body: toChannelUpdate(form) }, done);
    else create.mutate(toChannelCreate(form), done);
  };
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setChecked(true);
        if (Object.keys(faults).length === 0) save();
      }}
    >
      <Stack gap="sm">
        <Select
          label="Kind"
          data={kinds}
          value={form.kind}
          disabled={channel !== null}
          onChange={(value) => value && set("kind", value as ChannelForm["kind"])}
          allowDeselect={false}
        />
        <TextInput data-autofocus label="Name" description="Shown in the console." {...text("name")} />
        {form.kind === "webhook" && (
          <>
            <TextInput label="Address" placeholder="https://hooks.example.org/thalweg" {...text("url")} />
            <PasswordInput label="Signing key" {...secret} />
          </>
        )}
        {form.kind === "email" && (
          <>
            <Group grow preventGrowOverflow={false} wrap="nowrap" align="flex-start">
              <TextInput label="Mail server" placeholder="mail.example.org" {...text("host")} />
              <PortInput value={form.port} onChange={(value) => set("port", value)} error={shown.port} />
            </Group>
            <Select
              label="Security"
              data={securities}
              value={form.security}
              onChange={(value) => value && set("security", value as ChannelForm["security"])}
              allowDeselect={false}
            />
            <TextInput
              label="User"
              description="Leave empty if the server needs no login."
              autoComplete="off"
              {...text("user")}
            />
            <PasswordInput label="Password" {...secret} />
            <TextInput label="From" placeholder="thalweg@example.org" {...text("sender")} />
            <TagsInput
              label="To"
              description="Press Enter after each address."
              value={form.recipients}
              onChange={(value) => set("recipients", value)}
              error={shown.recipients}
            />
            <Textarea
              label="Certificates to trust (PEM)"
              description="Leave empty to trust the system's certificates."
              rows={3}
              value={form.caCertificate}
              onChange={(event) => set("caCertificate", event.currentTarget.value)}
            />
          </>
        )}
        <Select
          label="Sends"
          data={[
            { value: "warning", label: "All alerts" },
            { value: "critical", label: "Critical alerts only" },
          ]}
          value={form.minSeverity}
          onChange={(value) => value && set("minSeverity", value as ChannelForm["minSeverity"])}
          allowDeselect={false}
        />
        <Switch
          label="Also send a notice when an alert ends"
          checked={form.sendResolved}
          onChange={(event) => set("sendResolved", event.currentTarget.checked)}
        />
        <Switch
          label="On"
          checked={form.enabled}
          onChange={(event) => set("enabled", event.currentTarget.checked)}
        />
        {saving.isError && <ProblemAlert problem={problemInWords(saving.error)} />}
        <Group justify="flex-end" gap="xs" mt="xs">
          <RestCallButton calls={[call]} />
          <Button type="submit" loading={saving.isPending}>
            {channel ? "Save" : "Add channel"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
