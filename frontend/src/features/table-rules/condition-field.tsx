import { Combobox, Group, Text, Textarea, useCombobox, VisuallyHidden } from "@mantine/core";
import { useLayoutEffect, useRef, useState } from "react";
import type { SourceColumn } from "@/api/types";
import { counted } from "@/lib/format";
import { completed, type Place, placeAt, suggestionsAt } from "./completion";

interface ConditionFieldProps {
  value: string;
  /** The table's, as far as they are known. */
  columns: SourceColumn[];
  /** The rule may tell the old row from the new. */
  readsRows: boolean;
  onChange: (condition: string) => void;
}

/** A rule's condition. While a word is typed, or with Ctrl and the space bar, it offers what may stand there. Enter and
 * Tab keep their meaning until an arrow key has chosen from the list. HTML leaves a field of several lines the role
 * textbox, which has no aria-expanded: the number of suggestions is said instead. */
export function ConditionField({ value, columns, readsRows, onChange }: ConditionFieldProps) {
  const [place, setPlace] = useState<Place | null>(null);
  const [isChosen, setChosen] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const caretToSet = useRef<number | null>(null);
  const offered = place ? suggestionsAt(value, place, columns, readsRows) : [];
  const isOpen = offered.length > 0;
  const combobox = useCombobox({ opened: isOpen, onOpenedChange: (opened) => opened || setPlace(null) });

  useLayoutEffect(() => {
    if (caretToSet.current === null || field.current?.value !== value) return;
    field.current.setSelectionRange(caretToSet.current, caretToSet.current);
    caretToSet.current = null;
  }, [value]);

  const look = (condition: string, caret: number) => {
    const found = placeAt(condition, caret);
    combobox.resetSelectedOption();
    setChosen(false);
    setPlace(found && (found.typed || found.ofRow) ? found : null);
  };
  const take = (text: string) => {
    if (!place) return;
    const { condition, caret } = completed(value, place, text);
    caretToSet.current = caret;
    onChange(condition);
    look(condition, caret);
  };

  return (
    <Combobox store={combobox} onOptionSubmit={take} position="bottom-start" width={340}>
      {/* Mantine would still name the option that was chosen before more was typed. */}
      <Combobox.Target withKeyboardNavigation={isOpen} {...(isChosen ? {} : { "aria-activedescendant": "" })}>
        <Textarea
          ref={field}
          label="Condition"
          description="A condition as in SQL's WHERE. Leave it empty to apply the rule always. Suggestions appear as you type; Ctrl+Space shows all of them, ↓ and Enter take one."
          placeholder="region = 'north'"
          autosize
          minRows={2}
          maxRows={12}
          spellCheck={false}
          aria-autocomplete="list"
          value={value}
          onChange={({ currentTarget }) => {
            onChange(currentTarget.value);
            look(currentTarget.value, currentTarget.selectionStart);
          }}
          onKeyDown={(event) => {
            if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) setChosen(true);
            if (!event.ctrlKey || event.key !== " ") return;
            event.preventDefault();
            setPlace(placeAt(value, event.currentTarget.selectionStart));
          }}
          onSelect={({ currentTarget: { selectionStart } }) =>
            setPlace((now) => (now && now.to !== selectionStart ? null : now))
          }
          onBlur={() => setPlace(null)}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
      </Combobox.Target>
      <VisuallyHidden aria-live="polite">{isOpen && counted(offered.length, "suggestion")}</VisuallyHidden>
      <Combobox.Dropdown>
        <Combobox.Options aria-label="Suggestions" mah={220} style={{ overflowY: "auto" }}>
          {offered.map(({ text, about }) => (
            <Combobox.Option key={`${about} ${text}`} value={text}>
              <Group justify="space-between" gap="xs" wrap="nowrap">
                <Text size="sm" ff="monospace" style={{ overflowWrap: "anywhere" }}>
                  {text}
                </Text>
                <Text size="xs" c="dimmed">
                  {about}
                </Text>
              </Group>
            </Combobox.Option>
          ))}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}
