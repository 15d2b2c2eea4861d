/** Addresses, transactions and amounts, shown alike everywhere. */

import { useConfig } from "~/api/queries";
import { CopyButton } from "~/components/basics";
import { Icon } from "~/components/icons";
import { formatAmount, shortAddress, shortHash } from "~/protocol/units";
import { Link } from "~/router";

/** A colour of one's own for an address, so that the eye finds it again. */
function hueOf(address: string): number {
  return Number.parseInt(address.slice(2, 8), 16) % 360;
}

interface AddressProps {
  address: string;
  name?: string | undefined;
  link?: boolean;
  copy?: boolean;
}

export function AddressTag({ address, name, link = false, copy = false }: AddressProps) {
  const hue = hueOf(address);
  const inside = (
    <>
      <span
        className="address-dot"
        aria-hidden="true"
        style={{
          background: `linear-gradient(135deg, hsl(${hue} 65% 52%), hsl(${(hue + 70) % 360} 65% 42%))`,
        }}
      />
      <span title={address}>{shortAddress(address)}</span>
    </>
  );
  return (
    <span className="address">
      {link ? (
        <Link to={`/workers/${address}`} className="address above-link">
          {inside}
        </Link>
      ) : (
        inside
      )}
      {name && <span className="faint">{name}</span>}
      {copy && <CopyButton text={address} label="Copy address" />}
    </span>
  );
}

/** A transaction: a link where somebody shows transactions, and otherwise something to copy. */
export function TransactionTag({ hash, label }: { hash: string; label?: string }) {
  const { explorer_tx_url: explorer } = useConfig();
  if (explorer) {
    return (
      <a className="address above-link" href={`${explorer}${hash}`} target="_blank" rel="noreferrer">
        {label ?? shortHash(hash)}
        <Icon name="external" size={12} />
        <span className="visually-hidden">(transaction, opens in a new tab)</span>
      </a>
    );
  }
  return (
    <span className="address">
      <span title={hash}>{label ?? shortHash(hash)}</span>
      <CopyButton text={hash} label="Copy transaction hash" />
    </span>
  );
}

export function Amount({ wei, digits = 6 }: { wei: string | bigint; digits?: number }) {
  const { currency } = useConfig();
  return <span className="number">{formatAmount(wei, currency.symbol, digits)}</span>;
}

export function useAmount(): (wei: string | bigint, digits?: number) => string {
  const { currency } = useConfig();
  return (wei, digits = 6) => formatAmount(wei, currency.symbol, digits);
}

export function ClassTag({ envClass, title }: { envClass: string; title?: string | null | undefined }) {
  return (
    <span className="mono" title={envClass}>
      {title ?? `${envClass.slice(2, 10)}…`}
    </span>
  );
}
