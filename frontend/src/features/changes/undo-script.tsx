import { Anchor, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { undoQuery } from "@/api/searches";
import { CopyBlock } from "@/ui/copy-block";
import { useNarrow } from "@/ui/narrow";
import { QueryFaces } from "@/ui/query-faces";
import { RestCall } from "@/ui/rest-call";

const SHOWN_CHARACTERS = 200_000;

interface UndoScriptProps {
  databaseId: string;
  searchId: string;
  onClose: () => void;
}

/** One transaction that undoes all that a search has found. Nothing runs it but who copies it. */
export function UndoScript({ databaseId, searchId, onClose }: UndoScriptProps) {
  const script = useQuery(undoQuery(databaseId, searchId));
  const narrow = useNarrow();
  const path = `/api/v1/sources/${databaseId}/searches/${searchId}:undo`;
  return (
    <Modal opened onClose={onClose} title="Undo as SQL" size="72rem" fullScreen={narrow}>
      <Stack gap="md">
        <Text size="sm">
          One transaction that undoes all changes which the search has found, the newest first. Read it before
          you run it at the source: it overwrites later changes of these rows, and triggers act.
        </Text>
        <QueryFaces query={script} inWords={problemInWords} loadingLabel="Making the SQL">
          {(sql) =>
            sql.length > SHOWN_CHARACTERS ? (
              <Anchor href={path} download>
                It is too long to be shown: download it
              </Anchor>
            ) : (
              <CopyBlock label="SQL" text={sql} copyLabel="Copy SQL" maxHeight={480} />
            )
          }
        </QueryFaces>
        <RestCall call={{ method: "GET", path }} />
      </Stack>
    </Modal>
  );
}
