import { NumberInput, type NumberInputProps } from "@mantine/core";

/** A TCP port beside a host's name, in a group that does not grow it. */
export function PortInput(props: Pick<NumberInputProps, "value" | "onChange" | "error">) {
  return (
    <NumberInput
      label="Port"
      min={1}
      max={65535}
      allowDecimal={false}
      hideControls
      w={110}
      style={{ flexGrow: 0 }}
      {...props}
    />
  );
}
