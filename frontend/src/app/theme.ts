import {
  ActionIcon,
  Anchor,
  Autocomplete,
  Badge,
  Button,
  Checkbox,
  type CSSVariablesResolver,
  createTheme,
  Drawer,
  type MantineColorsTuple,
  Modal,
  NavLink,
  NumberInput,
  PasswordInput,
  Select,
  Switch,
  Table,
  Tabs,
  Textarea,
  TextInput,
  Tooltip,
} from "@mantine/core";
import classes from "./theme.module.css";

const river: MantineColorsTuple = [
  "#eaf6f8",
  "#d5ebef",
  "#a9d6de",
  "#79c0cc",
  "#52aebd",
  "#36a2b3",
  "#2199ac",
  "#10788a",
  "#0a6f80",
  "#055a68",
];

// Neutrals with a little of the river's hue, so that the dark scheme reads as slate and not as black.
const dark: MantineColorsTuple = [
  "#d3dadf",
  "#b6c0c7",
  "#9aa7b0",
  "#6b7983",
  "#46525b",
  "#344049",
  "#263138",
  "#1a2329",
  "#141b20",
  "#0e1418",
];

const field = { defaultProps: { size: "xs" }, styles: { input: { fontSize: "13px" } } } as const;

// A dialog's header is not the page's: without the role axe counts it as a second banner.
const dialog = {
  closeButtonProps: { "aria-label": "Close" },
  attributes: { header: { role: "presentation" } },
  styles: { title: { fontSize: "15px", fontWeight: 600 } },
} as const;

// The contrast settings are what axe needs: Mantine's defaults leave text on filled and light surfaces below 4.5:1.
export const theme = createTheme({
  primaryColor: "river",
  colors: { river, dark },
  primaryShade: { light: 8, dark: 7 },
  autoContrast: true,
  luminanceThreshold: 0.18,
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "'JetBrains Mono', ui-monospace, monospace",
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  defaultRadius: "sm",
  cursorType: "pointer",
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "20px", lineHeight: "28px" },
      h2: { fontSize: "15px", lineHeight: "22px" },
      h3: { fontSize: "13px", lineHeight: "20px" },
    },
  },
  components: {
    Button: Button.extend({ defaultProps: { size: "xs" }, styles: { root: { minHeight: 24 } } }),
    Anchor: Anchor.extend({ classNames: { root: classes.link } }),
    ActionIcon: ActionIcon.extend({ defaultProps: { variant: "subtle", color: "gray" } }),
    Badge: Badge.extend({ defaultProps: { variant: "default", radius: "sm", tt: "none", fw: 500 } }),
    Modal: Modal.extend({ defaultProps: { ...dialog, centered: true } }),
    Drawer: Drawer.extend({ defaultProps: { ...dialog, position: "right", size: 560 } }),
    NavLink: NavLink.extend({ defaultProps: { variant: "light" } }),
    Table: Table.extend({ defaultProps: { verticalSpacing: 5, horizontalSpacing: "sm", fz: "sm" } }),
    Tabs: Tabs.extend({ defaultProps: { keepMounted: false } }),
    Tooltip: Tooltip.extend({
      defaultProps: {
        multiline: true,
        maw: 320,
        openDelay: 200,
        events: { hover: true, focus: true, touch: true },
      },
    }),
    TextInput: TextInput.extend(field),
    PasswordInput: PasswordInput.extend({
      ...field,
      styles: { ...field.styles, visibilityToggle: { minWidth: 24, minHeight: 24 } },
    }),
    // Its steppers are smaller than a finger; the arrow keys do the same.
    NumberInput: NumberInput.extend({
      ...field,
      defaultProps: { ...field.defaultProps, hideControls: true },
    }),
    Switch: Switch.extend({ styles: { track: { minHeight: 24 } } }),
    Autocomplete: Autocomplete.extend(field),
    Select: Select.extend(field),
    Checkbox: Checkbox.extend({ styles: { body: { minHeight: 24, alignItems: "center" } } }),
    Textarea: Textarea.extend(field),
  },
});

export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#56636b",
    "--mantine-color-placeholder": "#65727a",
    "--mantine-color-error": "#b3261e",
    "--mantine-color-body": "#ffffff",
  },
  dark: {
    "--mantine-color-dimmed": "#9dabb4",
    "--mantine-color-placeholder": "#8f9da6",
    "--mantine-color-error": "#ff8a80",
    "--mantine-color-body": "#141b20",
  },
});
