// The form of a channel: from and to what the API takes, and what is wrong with it.
import type { ChannelCreate } from "@/api/alerts";
import type { components } from "@/api/generated/schema";
import type { AlertChannel } from "@/api/types";

type Update = components["schemas"]["AlertChannelUpdate"];
type Security = components["schemas"]["MailSecurity"];

export interface ChannelForm {
  kind: AlertChannel["kind"];
  name: string;
  enabled: boolean;
  minSeverity: AlertChannel["min_severity"];
  sendResolved: boolean;
  secret: string;
  url: string;
  host: string;
  port: number | string;
  security: Security;
  user: string;
  sender: string;
  recipients: string[];
  caCertificate: string;
}

export const emptyChannel: ChannelForm = {
  kind: "webhook",
  name: "",
  enabled: true,
  minSeverity: "warning",
  sendResolved: true,
  secret: "",
  url: "",
  host: "",
  port: 587,
  security: "starttls",
  user: "",
  sender: "",
  recipients: [],
  caCertificate: "",
};

export function toChannelForm(channel: AlertChannel): ChannelForm {
  const settings = channel.settings as Record<string, unknown>;
  const text = (name: string) => String(settings[name] ?? "");
  return {
    ...emptyChannel,
    kind: channel.kind,
    name: channel.name,
    enabled: channel.enabled,
    minSeverity: channel.min_severity,
    sendResolved: channel.send_resolved,
    url: text("url"),
    host: text("host"),
    port: Number(settings.port ?? emptyChannel.port),
    security: (settings.security as Security | undefined) ?? emptyChannel.security,
    user: text("user"),
    sender: text("sender"),
    recipients: (settings.recipients as string[] | undefined) ?? [],
    caCertificate: text("ca_certificate"),
  };
}

function mailSettings(form: ChannelForm) {
  return {
    host: form.host.trim(),
    port: Number(form.port),
    security: form.security,
    user: form.user.trim(),
    sender: form.sender.trim(),
    recipients: form.recipients.map((address) => address.trim()),
    ca_certificate: form.caCertificate,
  };
}

export function toChannelCreate(form: ChannelForm): ChannelCreate {
  const common = {
    name: form.name.trim(),
    enabled: form.enabled,
    min_severity: form.minSeverity,
    send_resolved: form.sendResolved,
  };
  if (form.kind === "webhook")
    return { ...common, kind: "webhook", settings: { url: form.url.trim() }, secret: form.secret };
  if (form.kind === "email")
    return { ...common, kind: "email", settings: mailSettings(form), secret: form.secret };
  return { ...common, kind: "log", settings: {}, secret: "" };
}

/** An empty secret keeps the stored one. */
export function toChannelUpdate(form: ChannelForm): Update {
  const { kind: _kind, secret, ...rest } = toChannelCreate(form);
  return secret ? { ...rest, secret } : rest;
}

export type ChannelFaults = Partial<Record<keyof ChannelForm, string>>;

const address = /^[^\s@,;<>]+@[^\s@,;<>]+$/;

export function channelFaults(form: ChannelForm): ChannelFaults {
  const faults: ChannelFaults = {};
  if (form.name.trim() === "") faults.name = "Enter a name.";
  if (form.kind === "webhook" && !/^https?:\/\/[^\s/]+/.test(form.url.trim()))
    faults.url = "Enter an address that begins with https:// or http://.";
  if (form.kind === "email") {
    if (form.host.trim() === "") faults.host = "Enter the name or address of the mail server.";
    if (!(Number(form.port) >= 1 && Number(form.port) <= 65535))
      faults.port = "Enter a number from 1 to 65535.";
    if (!address.test(form.sender.trim())) faults.sender = "Enter a mail address.";
    if (form.recipients.length === 0 || !form.recipients.every((recipient) => address.test(recipient.trim())))
      faults.recipients = "Enter at least one mail address.";
  }
  return faults;
}
