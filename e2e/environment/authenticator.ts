// A user's authenticator app: RFC 6238 with what every app takes as given.
import { createHmac } from "node:crypto";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const STEP_MILLISECONDS = 30_000;

function decoded(secret: string): Buffer {
  const bits = [...secret].map((sign) => ALPHABET.indexOf(sign).toString(2).padStart(5, "0")).join("");
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

export class Authenticator {
  readonly #key: Buffer;
  #last = 0;

  constructor(secret: string) {
    this.#key = decoded(secret);
  }

  /**
   * A code that was not used yet. One is of use once and changes every 30 seconds: the second within a step is the
   * following step's, as of a device whose clock is a little fast.
   */
  code(): string {
    const current = Math.floor(Date.now() / STEP_MILLISECONDS);
    this.#last = Math.max(current, this.#last + 1);
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(BigInt(this.#last));
    const digest = createHmac("sha1", this.#key).update(counter).digest();
    const offset = (digest.at(-1) ?? 0) & 0xf;
    return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
  }
}
